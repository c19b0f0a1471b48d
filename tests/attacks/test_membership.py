"""Whether an image was delivered: lengths tell under an orthogonal core, moments under others."""

import numpy as np
import pytest

from mole.attacks.membership import ATTACK
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.views import MissingInputError, OutsiderView
from mole.audit.scoring import Truth, score
from real_images import fashion, morphed


def asked(core, *, delivered=True):
    """How well 100 delivered images are told from 100 others; or from others, where none was delivered."""
    private, public = (some.reshape(-1, 1, 7, 4, 7, 4).mean(axis=(3, 5)) for some in fashion())
    first = private[:100] if delivered else public[:100]
    candidates = np.concatenate([first, public[-100:]])
    view = OutsiderView(
        morphed=morphed(private, core)[:2500] if delivered else morphed(private, core)[500:], kappa=1,
        public=public[100:-100], candidates=candidates,
    )  # fmt: skip
    found = ATTACK.run(view, np.random.default_rng(0))
    return found, score(found, Truth(private, members=np.arange(200) < 100)).membership


@pytest.mark.parametrize(
    ("core", "by_lengths", "least"), [("orthogonal", True, 0.95), ("whitened", False, 0.75)]
)
def test_delivered_images_are_told_from_others(core, by_lengths, least):
    found, told = asked(core)
    assert found.facts["by lengths"] is by_lengths
    assert told > least


def test_images_that_were_not_delivered_are_not_told_apart():
    assert 0.35 < asked("orthogonal", delivered=False)[1] < 0.65


def test_it_needs_images_to_ask_about(rng):
    with pytest.raises(MissingInputError, match="no images of which to ask"):
        ATTACK.run(OutsiderView(morphed=rng.normal(size=(9, 1, 4, 4)), kappa=1), rng)


def test_half_is_chance():
    truth = Truth(np.zeros((1, 2)), members=np.array([True, False, True]))
    for figures, expected in (([2, 1, 3], 1.0), ([1, 2, 0], 0.0), ([1, 1, 1], 0.5)):
        found = Finding("", membership=np.array(figures, float))
        assert score(found, truth).membership == expected
    assert score(Finding("", membership=np.ones(3)), Truth(np.zeros((1, 2)))).membership is None
