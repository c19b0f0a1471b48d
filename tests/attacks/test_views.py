"""What an attacker's view offers: blocks, channels in order, and an honest answer about unknown layouts."""

import numpy as np
import pytest

from attackers import Delivery, random_conv
from images import smooth_images
from mole.attacks import (
    block_statistics,
    brute_force_core,
    channel_fingerprint,
    independent_components,
    known_pairs,
    linkage,
    reversing,
)
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.errors import ParameterError, ShapeError
from mole.scheme.convolution import features_of
from mole.scheme.layer_matrix import layer_matrix


@pytest.fixture
def delivery(rng) -> Delivery:
    layer = random_conv(rng, 8, (1, 8, 8), padding=1, bias=True)
    return Delivery(layer, rng.normal(size=(6, 1, 8, 8)), kappa=4, seed=rng.bytes(32), dtype="float64")


def test_blocks_are_what_the_core_multiplied(delivery):
    view, core = delivery.stolen, delivery.key.morphing.core
    blocks = view.to_blocks(view.morphed)
    assert blocks.shape == (6, 4, 16)
    assert np.allclose(view.to_samples(blocks @ core.inverse), delivery.plain)
    assert not np.allclose(view.to_samples(blocks @ core.matrix), delivery.plain)
    assert view.to_blocks(view.morphed.astype(np.float16)).dtype == np.float32


def test_channels_in_order_are_the_first_layers(delivery):
    view, own = delivery.developer, features_of(delivery.layer, delivery.plain)
    assert np.allclose(view.features_in_order(delivery.order, 3), own[:3])
    wrong = np.roll(delivery.order, 1)
    assert not np.allclose(view.features_in_order(wrong, 3), own[:3])


def test_rows_in_order_are_those_of_the_unshuffled_layer(delivery):
    inverse = delivery.key.morphing.inverse_rows(0, 64, dtype=np.dtype(np.float64))
    expected = inverse @ layer_matrix(delivery.layer)
    rows = np.array([3, 40, 5])
    assert np.allclose(delivery.developer.rows_in_order(delivery.order, rows), expected[rows])
    wrong = np.roll(delivery.order, 1)
    assert not np.allclose(delivery.developer.rows_in_order(wrong, rows), expected[rows])


NEED_BLOCKS = (block_statistics, brute_force_core, independent_components, known_pairs, reversing)


@pytest.mark.parametrize("attack", NEED_BLOCKS)
def test_an_unknown_layout_is_named_where_blocks_are_needed(rng, attack):
    layer = random_conv(rng, 8, (1, 8, 8), padding=1)
    plain = smooth_images(rng, 400, (1, 8, 8))
    delivery = Delivery(layer, plain[:200], kappa=4, seed=rng.bytes(32), public=plain[200:])
    assert attack.run(delivery.injecting(plain[200:240]), rng).images is not None
    delivery._common["layout"] = "spirals"
    with pytest.raises(NotApplicableError, match="layout 'spirals', and this version does not know"):
        attack.run(delivery.injecting(plain[200:240]), rng)


def test_what_needs_no_blocks_goes_on_in_an_unknown_layout(delivery, rng):
    assert linkage.run(delivery.stolen, rng).maps is not None
    delivery._common["layout"] = "spirals"
    assert delivery.stolen.block == 16
    found = linkage.run(delivery.stolen, rng)
    assert found.maps is None
    assert found.distances is not None
    assert np.array_equal(channel_fingerprint.run(delivery.developer, rng).channel_order, delivery.order)


def test_views_refuse_what_does_not_fit_and_cannot_be_written_to(rng):
    rows = rng.normal(size=(4, 1, 8, 8))
    with pytest.raises(ParameterError, match="kappa = 5"):
        OutsiderView(morphed=rows, kappa=5)
    with pytest.raises(ShapeError, match="public images differ in shape"):
        OutsiderView(morphed=rows, kappa=1, public=rng.normal(size=(4, 1, 8, 9)))
    with pytest.raises(ValueError, match="read-only"):
        OutsiderView(morphed=rows, kappa=1).morphed[0] = 0
