"""What an attacker knows of the channel: how to draw as deliveries do, and the right likelihoods."""

import math

import numpy as np
import pytest
from scipy import stats

from mole.attacks.delivered_or_not import which_of_two
from mole.attacks.nearest_features import likeliest
from mole.attacks.tools.protected_view import Draws
from mole.protection import Certificate, FreshNoise, release
from mole.protection.channel import grid_step
from mole.protection.known_channel import KnownChannel

CERTIFICATES = [Certificate.for_bits(2.0, features=6), Certificate(6, 1.0, 0.5)]


def density(certificate, rows, features):
    """Logarithm of the density of rows, (n, d), of one image's features, (d,)."""
    sigma = certificate.sigma
    rho = np.linalg.norm(features) / sigma
    gaussian = stats.norm.logpdf(rows / sigma).sum(axis=1)
    information = (rows / sigma) @ (features / sigma) - rho**2 / 2
    if certificate.limit is None:
        return gaussian + information
    limit = math.log(2) * certificate.limit
    w = np.linspace(-12, 12 + rho, 200_001)
    cut = stats.norm.pdf(w) * np.exp(np.clip(rho * w - rho**2 / 2, -limit, limit))
    return gaussian + np.clip(information, -limit, limit) - np.log(np.trapezoid(cut, w))


@pytest.fixture
def features(rng):
    found = rng.normal(size=(30, 6))
    return found / np.linalg.norm(found, axis=1, keepdims=True) * rng.uniform(0.05, 1, size=(30, 1))


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=["limited", "Gaussian"])
def test_likelihoods_are_those_of_the_densities(rng, certificate, features):
    channel = KnownChannel(certificate)
    rows = release(np.repeat(features, 20, axis=0), certificate, FreshNoise())
    logs = np.stack([density(certificate, rows, one) for one in features], axis=1)
    found = likeliest(rows, features, channel)
    best = logs.max(axis=1)
    assert np.allclose(np.take_along_axis(logs, found[:, None], axis=1)[:, 0], best, atol=1e-3)
    pairs = np.stack([features[:15], features[15:]], axis=1)
    told = which_of_two(rows[:15], pairs, channel)
    wanted = [logs[place, place] - logs[place, 15 + place] for place in range(15)]
    assert np.allclose(told, wanted, atol=1e-3)


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=["limited", "Gaussian"])
def test_its_own_draws_are_on_the_grid_and_as_they_were_delivered(rng, certificate, features):
    channel, many = KnownChannel(certificate), np.repeat(features, 3000, axis=0)
    noisy = channel.noisy(many, Draws(rng))
    step = grid_step(certificate.sigma)
    assert np.array_equal(noisy, np.rint(noisy / step) * step)
    means = noisy.reshape(len(features), -1, 6).mean(axis=1)
    assert np.abs(means - channel.expected(features)).max() < 6 * certificate.sigma / math.sqrt(3000)
    again = KnownChannel(certificate).noisy(many[:5], Draws(np.random.default_rng(1)))
    assert np.array_equal(again, channel.noisy(many[:5], Draws(np.random.default_rng(1))))


def test_what_is_cut_is_missing_on_average(features):
    limited, gaussian = (KnownChannel(one).expected(features) for one in CERTIFICATES)
    assert np.array_equal(gaussian, features)
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    lost = np.linalg.norm(features - limited, axis=1) / lengths[:, 0]
    assert lost[lengths.argmax()] > 2 * lost[np.abs(lengths - 0.7).argmin()]  # most of the longest
    kept = CERTIFICATES[0].sigma / KnownChannel(CERTIFICATES[0]).spread
    longest = KnownChannel(CERTIFICATES[0]).expected(features / lengths)
    assert np.allclose(longest, (features / lengths) * kept)
    assert 0.9 < kept < 0.99


@pytest.mark.parametrize("seed", range(5))
def test_rows_whose_noise_has_no_limit_are_told(seed):
    rng = np.random.default_rng(seed)
    limited = Certificate.for_bits(1.0, features=32)
    gaussian = Certificate(32, limited.clip, limited.sigma)
    features = rng.normal(size=(8000, 32))
    features /= np.linalg.norm(features, axis=1, keepdims=True) * (1 + 1e-9)
    channel = KnownChannel(limited)
    for made, is_told in ((limited, False), (gaussian, True)):
        rows = KnownChannel(made).noisy(features, Draws(rng))
        assert (channel.without_limit(rows, features) > math.log(1e6)) is is_told
