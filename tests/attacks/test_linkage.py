"""What morphed rows tell of each other."""

import numpy as np
import pytest

from mole.attacks.linkage import ATTACK, same_rows
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from real_images import fashion, morphed


def attack(private, core, kappa=1, public=None):
    view = OutsiderView(morphed=morphed(private, core, kappa), kappa=kappa, public=public)
    return ATTACK.run(view, np.random.default_rng(0))


@pytest.mark.parametrize("core", ["orthogonal", "gaussian", "whitened"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_no_core_hides_duplicates(core, dtype):
    private = fashion()[0].copy()
    private[[2000, 2500, 7]] = private[[3, 3, 4]]
    found = attack(private.astype(dtype), core)
    assert found.facts["first groups of the same image"] == [[3, 2000, 2500], [4, 7]]
    assert found.facts["pairs of the same image"] == 4
    assert "4 pairs of the 3,000 rows" in found.words


def test_without_duplicates_none_are_found():
    assert attack(fashion()[0], "orthogonal").facts["pairs of the same image"] == 0


def test_an_orthogonal_core_keeps_neighbours_and_a_whitened_one_does_not():
    private, public = fashion()
    kept, hidden = (attack(private, core, public=public) for core in ("orthogonal", "whitened"))
    truth = Truth(private)
    assert score(kept, truth).neighbours > 0.99
    assert score(kept, truth).distance_correlation > 0.9999
    assert "the core keeps them" in kept.words
    assert score(hidden, truth).neighbours < 0.2
    assert score(hidden, truth).distance_correlation < 0.5
    assert "the core hides them" in hidden.words
    others = Truth(np.roll(private, 1, axis=0))
    assert score(kept, others).neighbours < 0.05
    assert abs(score(kept, others).distance_correlation) < 0.1


def test_block_lengths_of_an_orthogonal_core_are_the_energy_of_parts_of_the_image():
    private, _ = fashion()
    found = attack(private, "orthogonal", kappa=28)  # a block is a row of pixels
    energy = np.sqrt(np.square(private[: len(found.maps), 0]).mean(axis=2))
    assert found.maps[:, 0, :, 0] == pytest.approx(energy, rel=1e-3)
    assert score(found, Truth(private)).best_map > score(found, Truth(np.roll(private, 1, axis=0))).best_map
    blurred = attack(private, "whitened", kappa=28)
    assert not np.allclose(blurred.maps[:, 0, :, 0], energy, rtol=0.1)


@pytest.mark.parametrize(("shape", "kappa"), [((1, 4, 4), 1), ((3, 4, 4), 3), ((16,), 4)])
def test_blocks_without_a_place_are_not_painted(shape, kappa, rng):
    view = OutsiderView(morphed=rng.normal(size=(9, *shape)), kappa=kappa)
    assert ATTACK.run(view, rng).maps is None


def test_many_equal_rows_are_one_group(rng):
    rows = np.vstack([np.ones((500, 5)), rng.normal(size=(30, 5)), np.ones((500, 5))])
    assert same_rows(rows, rng) == [(*range(500), *range(530, 1030))]


def test_two_rows_are_too_few(rng):
    with pytest.raises(NotApplicableError, match="too few rows"):
        ATTACK.run(OutsiderView(morphed=rng.normal(size=(2, 1, 4, 4)), kappa=1), rng)
