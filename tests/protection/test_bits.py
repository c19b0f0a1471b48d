"""Bits against what rows really tell: mutual information with some images, by drawing rows."""

import math

import numpy as np
import pytest

from mole.protection import Certificate, FreshNoise, release
from mole.protection.known_channel import KnownChannel

ROWS = 12_000


def told(certificate, images):
    """Bits that rows tell about which of these images it was, on average, and the error of that figure."""
    rows = release(np.repeat(images, ROWS // len(images), axis=0), certificate, FreshNoise())
    near = (rows @ images.T - np.square(images).sum(axis=1) / 2) / certificate.sigma**2
    likelier = KnownChannel(certificate).told(near, images)
    own = likelier[np.arange(len(rows)), np.repeat(np.arange(len(images)), ROWS // len(images))]
    bits = (own - np.log(np.exp(likelier).mean(axis=1))) / math.log(2)
    return bits.mean(), bits.std() / math.sqrt(len(bits))


def on_the_sphere(rng, count, features):
    found = rng.normal(size=(count, features))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def opposite(rng, features):
    one = on_the_sphere(rng, 1, features)
    return np.concatenate([one, -one])


def of_many_lengths(rng, features):
    return on_the_sphere(rng, 8, features) * rng.uniform(size=(8, 1))


def everywhere(rng, features):
    return on_the_sphere(rng, 1000, features)


@pytest.mark.parametrize("bits", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("features", [1, 2, 8, 32])
@pytest.mark.parametrize("images", [opposite, of_many_lengths, everywhere])
def test_rows_tell_no_more_than_the_certificate_says(rng, bits, features, images):
    certificate = Certificate.for_bits(bits, features=features)
    found, error = told(certificate, images(rng, features))
    assert found <= bits + 5 * error


@pytest.mark.parametrize("bits", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("features", [8, 32])
def test_the_certificate_is_no_more_than_what_rows_of_very_many_images_tell(rng, bits, features):
    """With less noise they tell more than it says: the negative twin."""
    certificate = Certificate.for_bits(bits, features=features)
    images = everywhere(rng, features)
    found, error = told(certificate, images)
    assert found >= 0.97 * bits - 5 * error
    louder, error = told(Certificate.for_sigma(0.85 * certificate.sigma, features=features), images)
    assert louder > bits + 3 * error
