"""A core that stands on the diagonal more than once shows in how blocks go together."""

import numpy as np
import pytest

from mole.attacks.block_statistics import ATTACK, FEWEST_ROWS
from mole.attacks.tools.blocks import Moments, RotationSearch, Whitened, nearest_rotation
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from real_images import cifar10, fashion, morphed, needs_cifar10


def attack(private, public, core, kappa):
    view = OutsiderView(morphed=morphed(private, core, kappa), kappa=kappa, public=public)
    return ATTACK.run(view, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("core", "kappa"),
    [("orthogonal", 49), ("whitened", 28), ("gaussian", 28), ("whitened", 14), ("whitened", 7)],
)
def test_an_outsider_rebuilds_images_under_every_kind_of_core(core, kappa):
    private, public = fashion()
    found = attack(private, public, core, kappa)
    measured = score(found, Truth(private))
    assert measured.correlation > 0.95
    assert measured.reidentified > 0.95
    assert found.facts["side of the core"] == 784 // kappa
    others = score(found, Truth(np.roll(private, 1, axis=0)))
    assert others.correlation < 0.7  # pieces of clothing are alike: their common shape is no finding
    assert others.reidentified < 5 / 256


def test_public_images_of_another_kind_do_not_help(rng):
    private, _ = fashion()
    noise = rng.normal(size=private.shape).astype(np.float32)
    assert score(attack(private, noise, "whitened", 28), Truth(private)).reidentified < 0.3


@needs_cifar10
@pytest.mark.parametrize(("core", "kappa"), [("whitened", 192), ("gaussian", 48)])
def test_photographs(core, kappa):
    private, public = cifar10(4_000)
    measured = score(attack(private, public, core, kappa), Truth(private))
    assert measured.correlation > 0.7
    assert measured.reidentified > 0.9


def test_a_rotation_is_found_by_its_moments(rng):
    side, places = 6, 5
    mixing = rng.normal(size=(places * side, places * side))
    offset = rng.normal(size=places * side)
    first, second = (
        (rng.exponential(size=(20_000, places * side)) - 1) @ mixing + offset for _ in range(2)
    )
    rotation = nearest_rotation(rng.normal(size=(side, side)))
    public = Whitened.of(first.reshape(-1, places, side))
    turned = Whitened.of(second.reshape(-1, places, side) @ rotation)
    search = RotationSearch(Moments.of(public.blocks), Moments.of(turned.blocks))
    climbed = [search.climb(search.start(rng.normal(size=places**2)), 100) for _ in range(4)]
    found, agreement = max(climbed, key=lambda pair: pair[1])
    assert turned.whiten @ found.T @ public.colour == pytest.approx(rotation.T, abs=0.1)
    assert 0.98 * search.most < agreement < 1.0001 * search.most
    assert search.slope(nearest_rotation(rng.normal(size=(side, side))))[1] < 0.9 * agreement


def test_climbing_never_goes_down(rng):
    some, others = (Moments.of(Whitened.of(rng.normal(size=(50, 4, 5))).blocks) for _ in range(2))
    search = RotationSearch(some, others)
    rotation = nearest_rotation(rng.normal(size=(5, 5)))
    heights = [search.slope(rotation)[1]] + [search.climb(rotation, steps)[1] for steps in (1, 5, 20, 80)]
    assert heights == sorted(heights)
    assert heights[-1] > heights[0]


def test_it_declines_what_it_cannot_do(rng):
    rows = rng.normal(size=(FEWEST_ROWS, 1, 8, 8)).astype(np.float32)
    wide = np.zeros((FEWEST_ROWS, 1, 64, 64), np.float32)
    for view, reason in [
        (OutsiderView(morphed=rows, kappa=1, public=rows), "kappa = 1"),
        (OutsiderView(morphed=rows, kappa=2), "no public images"),
        (OutsiderView(morphed=rows[1:], kappa=2, public=rows), "199 images are too few"),
        (OutsiderView(morphed=wide, kappa=2, public=wide), "side 2048 takes too long"),
    ]:
        with pytest.raises(NotApplicableError, match=reason):
            ATTACK.run(view, rng)


def test_of_large_samples_it_compares_a_part(rng):
    rows = rng.normal(size=(FEWEST_ROWS, 1, 64, 64)).astype(np.float32)
    found = ATTACK.run(OutsiderView(morphed=rows, kappa=256, public=rows), rng)
    assert found.facts["blocks compared"] == 192
    assert found.images.shape == rows.shape
