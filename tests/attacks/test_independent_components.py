"""Independent components give small cores away."""

import sys

import numpy as np
import pytest

from mole.attacks.independent_components import ATTACK, MOST_SIDE
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from mole.errors import MissingExtraError
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Morphing, orthogonal_core, whitened_core
from mole.scheme.whitening import Whitening
from real_images import cifar10, fashion, needs_cifar10


def view_of(private, public, side, core):
    normal = np.random.default_rng(side).normal(size=(side, side))
    if core == "orthogonal":
        made = orthogonal_core(normal)
    else:
        made = whitened_core(normal, Whitening.estimate(private.reshape(-1, side)))
    kappa = private[0].size // side
    return OutsiderView(
        morphed=Morphing(Layout.of("rows", private.shape[1:], kappa), made).morph(private),
        kappa=kappa,
        public=public,
    )


@pytest.mark.parametrize("core", ["orthogonal", "whitened"])
@pytest.mark.parametrize("side", [4, 7, 16])
def test_small_cores_are_given_away(side, core, rng):
    private, public = fashion()
    found = ATTACK.run(view_of(private, public, side, core), rng)
    measured = score(found, Truth(private))
    assert measured.correlation > 0.95
    assert measured.reidentified > 0.95
    assert found.facts["q"] == side
    assert score(found, Truth(np.roll(private, 1, axis=0))).reidentified < 5 / 256


@needs_cifar10
def test_photographs(rng):
    private, public = cifar10(3_000)
    assert (
        score(ATTACK.run(view_of(private, public, 4, "whitened"), rng), Truth(private)).correlation > 0.95
    )
    larger = score(ATTACK.run(view_of(private, public, 64, "whitened"), rng), Truth(private))
    assert larger.correlation < 0.8  # what it does not give away is worth a test as well


def test_noise_has_no_components_to_match(rng):
    noise = rng.normal(size=(2, 2000, 1, 8, 8)).astype(np.float32)
    measured = score(ATTACK.run(view_of(*noise, 16, "orthogonal"), rng), Truth(noise[0]))
    assert abs(measured.correlation) < 0.3


def test_it_declines_what_it_cannot_do(rng):
    rows = rng.normal(size=(9, 1, 16, 16)).astype(np.float32)
    for view, reason in [
        (
            OutsiderView(morphed=rows, kappa=1, public=rows),
            f"256 elements take too long to find: {MOST_SIDE}",
        ),
        (OutsiderView(morphed=rows, kappa=4), "no public images"),
        (OutsiderView(morphed=rows, kappa=4, public=rows), "36 blocks of public images are too few"),
    ]:
        with pytest.raises(NotApplicableError, match=reason):
            ATTACK.run(view, rng)


def test_without_scikit_learn_it_says_what_to_install(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    rows = rng.normal(size=(400, 1, 4, 4)).astype(np.float32)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[audit\]'"):
        ATTACK.run(OutsiderView(morphed=rows, kappa=2, public=rows), rng)
