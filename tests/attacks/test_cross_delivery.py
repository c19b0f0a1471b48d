"""One image under one key is one row, in whatever delivery it stands."""

import numpy as np
import pytest

from images import smooth_images
from mole.attacks.cross_delivery import ATTACK
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from mole.exchange.shards import Encoding
from mole.scheme.shapes import unroll
from real_images import morphed


@pytest.mark.parametrize("core", ["orthogonal", "whitened", "gaussian"])
def test_rows_of_two_deliveries_are_linked_under_every_core(rng, core):
    images = smooth_images(rng, 300, (1, 8, 8))
    both = morphed(images, core)
    order = rng.permutation(np.arange(50, 300))
    eight = Encoding.fit("int8", unroll(both))
    elsewhere = eight.decode(eight.encode(unroll(both[order]))).reshape(-1, 1, 8, 8)
    found = ATTACK.run(OutsiderView(morphed=both[:100], kappa=1, elsewhere=elsewhere), rng)
    assert found.links.tolist() == [[row, order.tolist().index(row)] for row in range(50, 100)]
    measured = score(found, Truth(images[:100], elsewhere=images[order]))
    assert (measured.linked, measured.linkable) == (1.0, 50)
    assert "50 of the 100 rows stand in the other delivery" in found.words


def test_under_another_key_nothing_is_linked(rng):
    images = smooth_images(rng, 200, (1, 8, 8))
    here, there = (morphed(images, "whitened", seed=seed) for seed in (1, 2))
    found = ATTACK.run(OutsiderView(morphed=here, kappa=1, elsewhere=there), rng)
    assert found.links.shape == (0, 2)
    assert score(found, Truth(images, elsewhere=images)).linked == 0


def test_it_needs_another_delivery(rng):
    with pytest.raises(NotApplicableError, match="no second delivery"):
        ATTACK.run(OutsiderView(morphed=rng.normal(size=(9, 1, 4, 4)), kappa=1), rng)
