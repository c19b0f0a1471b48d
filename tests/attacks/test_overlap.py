"""Delivered images that are public are found by their lengths, and give the core."""

import numpy as np
import pytest

from images import smooth_images
from mole.attacks.overlap import ATTACK, find_pairs
from mole.attacks.tools.views import MissingInputError, OutsiderView
from mole.audit.scoring import Truth, score
from real_images import morphed

SHAPE, Q = (3, 4, 4), 48


@pytest.fixture
def images(rng):
    return smooth_images(rng, 700, SHAPE)


def view(images, core, kappa=1, shared=100):
    """200 delivered images, the last of which are among 500 public ones."""
    private = images[:200]
    public = np.concatenate([images[200 : 700 - shared], private[200 - shared :]])
    return OutsiderView(morphed=morphed(private, core, kappa), kappa=kappa, public=public)


@pytest.mark.parametrize("kappa", [1, 3])
def test_an_orthogonal_core_gives_the_other_images_away(images, kappa):
    found = ATTACK.run(view(images, "orthogonal", kappa), np.random.default_rng(0))
    truth = Truth(images[:200], public=view(images, "orthogonal").public)
    measured = score(found, truth)
    assert (measured.linked, measured.linkable) == (1.0, 100)
    assert measured.rmse < 1e-3  # also of the hundred that are not public
    assert found.facts["found"] == 100
    assert "100 of 500 public images were found" in found.words


def test_fewer_than_q_show_a_part(images):
    found = ATTACK.run(view(images, "orthogonal", shared=24), np.random.default_rng(0))
    measured = score(found, Truth(images[:200]))
    assert found.facts["found"] == 24 < found.facts["needed for the core"] == Q
    assert 0.1 < measured.rmse < 0.9


@pytest.mark.parametrize(("core", "shared"), [("orthogonal", 0), ("whitened", 100), ("gaussian", 100)])
def test_without_overlap_or_without_lengths_none_are_found(images, core, shared):
    seen = view(images, core, shared=shared)
    found = ATTACK.run(seen, np.random.default_rng(0))
    assert len(find_pairs(seen, seen.public)) == 0
    assert found.images is None
    assert "None of the" in found.words


def test_it_needs_public_images(images, rng):
    with pytest.raises(MissingInputError, match="no public images"):
        ATTACK.run(OutsiderView(morphed=images, kappa=1), rng)
