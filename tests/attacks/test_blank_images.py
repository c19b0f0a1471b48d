"""A blank image is a known one: it gives one number of every other, and a border makes the core smaller."""

import numpy as np
import pytest

from images import smooth_images
from mole.attacks.blank_images import ATTACK
from mole.attacks.tools.views import OutsiderView
from mole.audit.scoring import Truth, score
from real_images import morphed

BLACK = -4.0


@pytest.fixture
def images(rng):
    made = smooth_images(rng, 1200, (1, 6, 6))
    made[rng.permutation(1200)[:40]] = BLACK
    return made


@pytest.mark.parametrize("core", ["orthogonal", "whitened"])
def test_blank_images_give_one_number_of_every_row(images, core):
    seen = OutsiderView(morphed=morphed(images[:600], core), kappa=1, public=images[600:])
    found = ATTACK.run(seen, np.random.default_rng(0))
    truth = images[:600]
    assert score(found, Truth(truth)).components[0] > (0.9999 if core == "orthogonal" else 0.9)
    assert found.facts["rows taken for blank"] == (truth == BLACK).all(axis=(1, 2, 3)).sum()
    assert score(found, Truth(np.roll(truth, 1, axis=0))).components[0] < 0.5


def test_without_blank_images_there_is_nothing_to_go_by(images):
    lively = images[(images != BLACK).any(axis=(1, 2, 3))]
    found = ATTACK.run(
        OutsiderView(morphed=morphed(lively, "orthogonal"), kappa=1), np.random.default_rng(0)
    )
    assert found.coefficients is None
    assert "No row occurs 3 times" in found.words
    assert found.facts["directions without variation"] == 0


def test_a_border_is_counted(images):
    framed = images.copy()
    framed[:, :, [0, -1]] = BLACK
    framed[:, :, :, [0, -1]] = BLACK
    found = ATTACK.run(
        OutsiderView(morphed=morphed(framed, "orthogonal"), kappa=1), np.random.default_rng(0)
    )
    assert found.facts["directions without variation"] == 20
    assert "It varies in 16 of 36 directions." in found.words
