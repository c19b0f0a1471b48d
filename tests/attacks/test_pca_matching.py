"""Principal components of morphed data are those of public images, unless the core whitens."""

import sys

import numpy as np
import pytest

from mole.attacks.pca_matching import ATTACK, FEWEST_ROWS, leading_components
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from mole.errors import MissingExtraError
from real_images import cifar10, fashion, morphed, needs_cifar10


def attack(private, public, core, kappa=1):
    view = OutsiderView(morphed=morphed(private, core, kappa), kappa=kappa, public=public)
    return ATTACK.run(view, np.random.default_rng(0))


def good(found, private):
    return sum(value >= 0.8 for value in score(found, Truth(private)).components)


@pytest.mark.parametrize(("core", "kappa"), [("orthogonal", 1), ("gaussian", 1), ("orthogonal", 4)])
def test_components_of_every_row_are_read_off(core, kappa):
    private, public = fashion()
    found = attack(private, public, core, kappa)
    assert good(found, private) >= 6
    measured = score(found, Truth(private))
    assert measured.correlation > 0.75
    assert measured.reidentified > 20 / 256
    assert found.coefficients.shape == (3000, 10)


def test_other_rows_have_other_components():
    private, public = fashion()
    found = attack(private, public, "orthogonal")
    others = Truth(np.roll(private, 1, axis=0))
    assert max(score(found, others).components) < 0.1
    assert score(found, others).reidentified < 5 / 256


def test_a_whitened_core_stops_it():
    private, public = fashion()
    found = attack(private, public, "whitened")
    measured = score(found, Truth(private))
    assert max(measured.components) < 0.2  # chance makes more of 3,000 rows than of 10,000
    assert measured.reidentified < 5 / 256
    assert "about equally in all directions" in found.words


def test_a_core_that_whitened_few_images_stops_it_too():
    """300 images of 784 elements, by an attacker with 3,000 of the same kind; and as exactly as can be."""
    private, public = (images[:count] for images, count in zip(fashion(), (300, 3000), strict=True))
    assert good(attack(private, public, "orthogonal"), private) >= 4
    found = attack(private, public, "whitened")
    assert max(score(found, Truth(private)).components) < 0.3  # chance makes more of 300 rows still
    assert score(found, Truth(private)).reidentified < 5 / 256
    assert "about equally in all directions" in found.words
    ranked = [exact_components(rows) for rows in (public, morphed(private, "whitened", 1))]
    true = private.reshape(len(private), -1) @ ranked[0].T
    seen = morphed(private, "whitened", 1).reshape(len(private), -1) @ ranked[1].T
    assert max(abs(np.corrcoef(true[:, i], seen[:, i])[0, 1]) for i in range(10)) < 0.3


def exact_components(images: np.ndarray) -> np.ndarray:
    """The ten strongest directions, to the last digit: variances that differ by 1e-5 are told apart."""
    rows = images.reshape(len(images), -1).astype(np.float64)
    return np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:10]


def test_signs_are_mostly_right():
    private, public = fashion()
    found = attack(private, public, "orthogonal")
    true = private.reshape(len(private), -1) @ found.directions.T
    signs = [np.corrcoef(found.coefficients[:, i], true[:, i])[0, 1] for i in range(8)]
    assert sum(value > 0.8 for value in signs) >= 7


@needs_cifar10
@pytest.mark.parametrize("core", ["orthogonal", "gaussian", "whitened"])
def test_photographs(core):
    private, public = cifar10()
    found = attack(private, public, core)
    if core == "whitened":
        assert max(score(found, Truth(private)).components) < 0.1
    else:
        assert good(found, private) >= 6


def test_it_declines_what_it_cannot_do(rng):
    private, public = fashion()
    few = private[: FEWEST_ROWS - 1]
    for view, reason in [
        (OutsiderView(morphed=private, kappa=1), "no public images"),
        (OutsiderView(morphed=few, kappa=1, public=public), "99 morphed rows are too few"),
        (OutsiderView(morphed=private, kappa=1, public=few), "99 public images are too few"),
    ]:
        with pytest.raises(NotApplicableError, match=reason):
            ATTACK.run(view, rng)


def test_leading_components_against_a_full_solution(rng):
    rows = rng.normal(size=(400, 60)) * np.geomspace(10, 0.1, 60) + rng.normal(size=60)
    found = leading_components(rows, 5, rng)
    variances, directions = np.linalg.eigh(np.cov(rows.T, bias=True))
    assert found.variances == pytest.approx(variances[::-1][:5], rel=1e-6)
    assert np.abs(np.sum(found.directions.T * directions[:, ::-1][:, :5], axis=0)) == pytest.approx(
        1, abs=1e-3
    )
    assert found.coefficients == pytest.approx((rows - rows.mean(axis=0)) @ found.directions.T)


def test_half_precision_and_fewer_elements_than_components(rng):
    rows = rng.normal(size=(200, 1, 2, 3)).astype(np.float16)
    found = ATTACK.run(OutsiderView(morphed=rows, kappa=1, public=rows.astype(np.float64)), rng)
    assert found.images.shape == rows.shape
    assert found.coefficients.shape == (200, 6)


def test_without_scikit_learn_it_says_what_to_install(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.utils.extmath", None)
    rows = rng.normal(size=(200, 1, 4, 4)).astype(np.float32)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[audit\]'"):
        ATTACK.run(OutsiderView(morphed=rows, kappa=1, public=rows), rng)
