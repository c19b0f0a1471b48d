"""Solving the augmented layer for the core: not as published, but with the order found."""

import numpy as np
import pytest

import mole
from attackers import CORES, Delivery, cifar, fashion, needs_cifar, random_conv
from images import smooth_images
from mole.attacks.reversing import run


@needs_cifar
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kappa", [1, 3])
def test_cifar(rng, core, kappa):
    sample = cifar("x_train", 6400) if core == "whitened" else None
    layer = random_conv(rng, 64, (3, 32, 32), padding=1)
    delivery = Delivery(layer, cifar("x_test", 64), kappa=kappa, core=core, sample=sample)
    finding = run(delivery.developer, rng)
    assert finding.facts["unexplained with channels as they come"] > 0.5
    assert finding.facts["unexplained with the order found"] < 1e-3
    assert finding.facts["unknowns as published"] == 3072 // kappa + 27
    assert finding.facts["equations as published"] == 1024
    assert finding.facts["equations as counted"] == 201_326_592
    assert delivery.score(finding).rmse < 1e-2


@pytest.mark.parametrize("kappa", [1, 2, 4])
def test_clothes(rng, kappa):
    delivery = Delivery(random_conv(rng, 12, (1, 28, 28), padding=1), fashion("x_private", 64), kappa=kappa)
    finding = run(delivery.developer, rng)
    assert "it fails" in finding.words
    assert "inverse core itself" in finding.words
    assert finding.facts["unexplained with channels as they come"] > 0.5
    score = delivery.score(finding)
    assert (score.channels, score.reidentified) == (1, 1)
    assert score.rmse < 1e-3


def test_a_core_of_several_bands_gives_images_that_features_do_not_hold(rng):
    """Patches of 48 numbers, 24 features of each: half of an image is lost, and yet all comes back."""
    layer = random_conv(rng, 24, (3, 16, 16), 4, stride=4)
    plain = smooth_images(rng, 32, (3, 16, 16))
    safe = Delivery(layer, plain, kappa=1, public=smooth_images(rng, 500, (3, 16, 16)))
    held = run(safe.developer, rng)
    assert held.facts["of it determined"] == 384
    assert safe.score(held).rmse > 0.1
    broken = Delivery(layer, plain, kappa=3)
    finding = run(broken.developer, rng)
    assert finding.facts["of it determined"] == finding.facts["side of the core"] == 256
    assert broken.score(finding).channels == 1
    assert broken.score(finding).rmse < 1e-3


def test_a_narrow_linear_layer_with_a_small_core(rng):
    layer = mole.FirstLayer.linear(rng.normal(size=(40, 784)), None, input_shape=(1, 28, 28))
    delivery = Delivery(layer, fashion("x_private", 32), kappa=28)
    assert delivery.score(run(delivery.developer, rng)).rmse < 1e-3


def test_without_an_order_it_says_so(rng):
    layer = random_conv(rng, 12, (1, 28, 28), 4, stride=4)
    delivery = Delivery(layer, fashion("x_private", 32))
    finding = run(delivery.developer, rng)
    assert "too few features to tell one order from another" in finding.words
    assert "order of channels could not be found" in finding.words
    assert finding.channel_order is None
    assert delivery.score(finding).rmse > 0.5


def test_another_layer_explains_nothing(rng):
    own, other = (random_conv(rng, 12, (1, 28, 28), padding=1) for _ in range(2))
    delivery = Delivery(own, fashion("x_private", 32))
    delivery.layer = other
    finding = run(delivery.developer, rng)
    assert finding.facts["unexplained with the order found"] > 0.1
    assert "stays unexplained" in finding.words
    assert delivery.score(finding).rmse > 0.3


def test_the_core_unmorphs_images_that_were_never_delivered(rng):
    """Past and future: a view with other rows of the same key, and the same augmented layer."""
    layer = random_conv(rng, 12, (1, 28, 28), padding=1)
    delivery = Delivery(layer, fashion("x_private", 8), kappa=2)
    later = fashion("x_test", 8)
    delivery._common["morphed"] = mole.morph(later, delivery.key)
    assert np.allclose(run(delivery.developer, rng).images, later, atol=1e-3)
