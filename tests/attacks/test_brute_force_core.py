"""Guessing the core: works where there is next to nothing to guess, and nowhere else."""

import numpy as np
import pytest

from images import smooth_images
from mole.analysis.security import log2_core_guess_bound
from mole.attacks.brute_force_core import ATTACK, GUESSES, neighbour_correlation
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Core, Morphing, orthogonal_core
from mole.scheme.shapes import unroll
from real_images import fashion, morphed

SHAPE = (1, 16, 16)


def view_of(plain, side, rng, public=None):
    core = (
        Core(-np.ones((1, 1)), -np.ones((1, 1)))
        if side == 1
        else orthogonal_core(rng.normal(size=(side,) * 2))
    )
    kappa = plain[0].size // side
    return OutsiderView(
        morphed=Morphing(Layout.of("rows", plain.shape[1:], kappa), core).morph(plain),
        kappa=kappa,
        public=public,
    )


@pytest.mark.parametrize("side", [1, 2])
def test_tiny_cores_are_guessed(side, rng):
    plain = smooth_images(rng, 32, SHAPE)
    found = ATTACK.run(view_of(plain, side, rng), rng)
    assert found.facts["guesses"] == GUESSES
    assert score(found, Truth(plain)).correlation > 0.99
    assert "looks like images" in found.words
    others = Truth(smooth_images(rng, 32, SHAPE))
    assert score(found, others).correlation < 0.3


def test_the_smallest_core_of_a_key_is_not_guessed(rng):
    private, public = fashion()
    view = OutsiderView(morphed=morphed(private[:64], "orthogonal", kappa=49), kappa=49, public=public)
    found = ATTACK.run(view, rng)
    measured = score(found, Truth(private))
    assert abs(measured.correlation) < 0.3
    assert measured.reidentified < 0.3
    assert (
        found.facts["neighbouring pixels, best guess"]
        < found.facts["neighbouring pixels, public images"] / 2
    )


def test_it_reports_the_published_bound(rng):
    plain = smooth_images(rng, 8, SHAPE)
    found = ATTACK.run(view_of(plain, 256, rng), rng)
    bound = log2_core_guess_bound(input_elements=256, kappa=1, sigma=0.5)
    assert found.facts["log2 of the published chance of one guess"] == bound == -65536
    assert found.facts["log2 of the published chance of all of them"] == pytest.approx(
        bound + np.log2(GUESSES)
    )
    assert "looks like noise" in found.words
    assert found.facts["neighbouring pixels, public images"] is None


def test_a_guess_on_few_rows_is_an_even_rotation(rng):
    plain = smooth_images(rng, 4, SHAPE)
    found = ATTACK.run(view_of(plain, 256, rng), rng)
    lengths = [np.linalg.norm(unroll(images) @ unroll(images).T) for images in (found.images, plain)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-4)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 1)])
def test_samples_without_neighbours_are_declined(shape, rng):
    with pytest.raises(NotApplicableError, match="no neighbouring pixels"):
        ATTACK.run(OutsiderView(morphed=rng.normal(size=(9, *shape)), kappa=1), rng)


@pytest.mark.parametrize("shape", [(40,), (2, 40), (1, 4, 4, 4)])
def test_other_shapes_than_pictures(shape, rng):
    view = OutsiderView(morphed=rng.normal(size=(9, *shape)), kappa=2)
    assert ATTACK.run(view, rng).images.shape == (9, *shape)


def test_neighbours_of_noise_are_strangers(rng):
    assert abs(neighbour_correlation(rng.normal(size=(32, 3, 16, 16)))) < 0.05
    assert neighbour_correlation(smooth_images(rng, 32, (3, 16, 16))) > 0.5
