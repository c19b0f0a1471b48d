"""Guessing the order of channels: one order in beta! fits."""

import math
from itertools import permutations

import numpy as np
import pytest

import mole
from attackers import Delivery, fashion, random_conv, seed_of
from mole.attacks.channel_search import FITS, misfits, run
from mole.attacks.tools.channel_order import find_spaces
from mole.attacks.tools.views import NotApplicableError

SHAPE = (1, 8, 8)  # 36 positions clear of the padding: enough for two channels to show an order


def small_delivery(rng, channels: int, kernel: int = 2) -> Delivery:
    layer = random_conv(rng, channels, SHAPE, kernel)
    return Delivery(layer, rng.normal(size=(4, *SHAPE)), seed=seed_of(rng), dtype="float64")


@pytest.mark.parametrize("channels", [2, 3, 4, 5, 6])
def test_exactly_one_order_fits(rng, channels):
    for _ in range(5):
        delivery = small_delivery(rng, channels)
        finding = run(delivery.developer, rng)
        assert finding.facts["orders tried"] == finding.facts["orders in all"] == math.factorial(channels)
        assert finding.facts["orders that fit"] == 1
        assert (finding.channel_order == delivery.order).all()
        if channels > 2:  # two features of each pixel at the corner of an image can miss it
            assert delivery.score(finding).rmse < 1e-3


@pytest.mark.parametrize(("channels", "keys"), [(2, 200), (3, 300), (4, 600)])
def test_a_guess_succeeds_at_the_rate_of_one_in_beta_factorial(rng, channels, keys):
    """The layer's own order as the guess, over many keys."""
    layer = random_conv(rng, channels, SHAPE, 2)
    plain = rng.normal(size=(1, *SHAPE))
    fitted = 0
    for _ in range(keys):
        view = Delivery(layer, plain, kappa=4, seed=seed_of(rng), dtype="float64").developer
        fitted += int(misfits(find_spaces(view, rng), [tuple(range(channels))])[0] <= FITS)
    rate = 1 / math.factorial(channels)
    assert abs(fitted / keys - rate) <= 4 * math.sqrt(rate * (1 - rate) / keys)


def test_misfits_are_what_is_left_after_projecting(rng):
    """Against the projection written out, for every order of four channels."""
    delivery = small_delivery(rng, 4)
    spaces = find_spaces(delivery.developer, rng)
    orders = list(permutations(range(4)))
    slow = []
    for order in orders:
        own = spaces.own[:, list(order)].reshape(len(spaces.own), -1)
        delivered = spaces.delivered.reshape(len(spaces.delivered), -1)
        left = delivered - delivered @ own.T @ own
        slow.append(np.square(left).sum() / len(delivered))
    assert np.allclose(misfits(spaces, orders), slow, atol=1e-9)


def test_many_channels_are_guessed_in_vain(rng):
    delivery = Delivery(random_conv(rng, 20, (1, 28, 28), padding=1), fashion("x_private", 16))
    finding = run(delivery.developer, rng)
    assert finding.facts["orders tried"] == 20_000
    assert finding.facts["orders in all"] == "10^18.4"
    assert not finding.facts["found"]
    assert "chance of 10^-14" in finding.words
    assert delivery.score(finding).channels < 0.5


def test_another_layer_fits_in_no_order(rng):
    delivery = small_delivery(rng, 5)
    delivery.layer = random_conv(rng, 5, SHAPE, 2)
    finding = run(delivery.developer, rng)
    assert finding.facts["orders that fit"] == 0
    assert "none fits" in finding.words


def test_it_declines_where_every_order_fits(rng):
    layer = random_conv(rng, 4, (1, 8, 8), 2, stride=2)
    with pytest.raises(NotApplicableError, match="every order of its channels fits"):
        run(Delivery(layer, rng.normal(size=(2, 1, 8, 8))).developer, rng)


def test_it_declines_for_very_many_channels(rng):
    layer = mole.FirstLayer.linear(rng.normal(size=(128, 64)), None, input_shape=(1, 8, 8))
    with pytest.raises(NotApplicableError, match=r"10\^216"):
        run(Delivery(layer, rng.normal(size=(2, 1, 8, 8))).developer, rng)
