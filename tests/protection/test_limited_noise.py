"""Limited noise: formulas against integrals, draws against the density, and no row beyond the limit."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from mole.protection import Certificate, FreshNoise, release
from mole.protection.limited_noise import Along, limited, usual_limit
from mole.protection.picking import picked_from_gaussian, picked_from_limited

ALONG = st.builds(Along, rho=st.floats(0.01, 8), limit=st.floats(0.05, 20))
SAMPLES = 40_000


def density(one, w):
    """As the module says it, written a second time."""
    information = np.clip(one.rho * w - one.rho**2 / 2, -one.limit, one.limit)
    return stats.norm.pdf(w) * np.exp(information)


def integral(one, of):
    low, high = one.ends
    marks = sorted({-10.0, *(min(max(end, -10.0), one.rho + 10) for end in (low, high)), one.rho + 10})
    return sum(quad(lambda w: of(w) * density(one, w), *ends)[0] for ends in pairwise(marks))


@given(ALONG)
def test_the_formulas_are_the_integrals(one):
    mass = integral(one, lambda w: 1.0)
    assert one.mass == pytest.approx(mass, abs=1e-7)
    assert mass <= 1 + 1e-7
    assert one.mean == pytest.approx(integral(one, lambda w: w) / mass, abs=1e-5)
    assert one.square == pytest.approx(integral(one, lambda w: w**2) / mass, abs=1e-5)
    assert one.error == pytest.approx(integral(one, lambda w: (w - one.rho) ** 2) / mass, abs=1e-4)

    def information(w):
        return np.clip(one.rho * w - one.rho**2 / 2, -one.limit, one.limit) - math.log(mass)

    assert one.information == pytest.approx(integral(one, information) / mass, abs=1e-5)
    for nats in (-0.5 * one.limit, 0.0, 0.3 * one.limit):
        share = integral(one, lambda w, nats=nats: float(information(w) > nats)) / mass
        assert one.exceeding(nats) == pytest.approx(share, abs=2e-2)  # the step is hard to integrate
    assert one.exceeding(one.most) == 0.0
    assert one.exceeding(-one.limit - math.log(mass) - 1e-6) == 1.0


@pytest.mark.fresh_draws
@pytest.mark.parametrize(("rho", "limit"), [(1.22, 2.757), (0.3, 0.2), (3.4, 11.4), (2.0, 0.5)])
def test_draws_have_the_density(rho, limit):
    """A Kolmogorov-Smirnov test; with fresh draws it fails once in a million runs."""
    one, source = Along(rho, limit), FreshNoise()
    drawn = limited(source.normals(SAMPLES), np.full(SAMPLES, rho), limit, source)
    at = np.linspace(-10, rho + 10, 20_001)
    share = np.concatenate([[0], np.cumsum((density(one, at[1:]) + density(one, at[:-1])) / 2)])
    assert stats.kstest(drawn, lambda w: np.interp(w, at, share / share[-1])).pvalue > 1e-6
    assert drawn.mean() == pytest.approx(one.mean, abs=5 / math.sqrt(SAMPLES))


def test_gaussian_noise_does_not_pass_for_limited_noise(rng):
    """The negative twin: the same comparison tells the two apart."""
    one = Along(1.22, 2.757)
    at = np.linspace(-10, 11, 20_001)
    share = np.cumsum(density(one, at))
    drawn = 1.22 + rng.normal(size=SAMPLES)
    assert stats.kstest(drawn, lambda w: np.interp(w, at, share / share[-1])).pvalue < 1e-6


def test_without_features_there_is_nothing_to_limit(rng):
    normal = rng.normal(size=5)
    assert np.array_equal(limited(normal, np.zeros(5), 1.0, FreshNoise()), normal)


@pytest.mark.parametrize("longest", [36.0, 1e30])
def test_where_it_would_limit_nothing_there_is_no_limit(longest):
    assert usual_limit(longest) is None


@pytest.mark.parametrize("sigma", [999.0, 1001.0, 1e9, 1e60])
def test_much_noise_keeps_its_bounds(sigma):
    certificate = Certificate.for_sigma(sigma, features=128)
    assert 0 < certificate.bits <= certificate.bits_of_many
    assert 0 < certificate.maximal_leakage < certificate.epsilon() < 0.004


@pytest.mark.fresh_draws
@pytest.mark.parametrize("length", [1.0, 0.6])
def test_noise_across_the_features_stays_gaussian(length):
    certificate = Certificate.for_bits(1.0, features=12)
    features = np.zeros((SAMPLES, 12))
    features[:, 3] = length
    noise = (release(features, certificate, FreshNoise()) - features) / certificate.sigma
    across = np.delete(noise, 3, axis=1)
    assert stats.kstest(across[:, 5], "norm").pvalue > 1e-6
    assert np.abs(np.corrcoef(noise.T) - np.eye(12)).max() < 6 / math.sqrt(SAMPLES)
    one = Along(length / certificate.sigma, math.log(2) * certificate.limit)
    assert noise[:, 3].var() == pytest.approx(one.variance, abs=0.05)
    assert length < 1 or one.variance < 0.95  # what is cut shows where features are long


@given(st.floats(0.05, 30), st.integers(1, 10**9))
def test_picking_is_bounded_by_the_limit_and_hardly_more_than_with_gaussian_noise(rho, candidates):
    limit = usual_limit(rho)
    gaussian = picked_from_gaussian(2000, rho, 1.0, candidates)
    share = picked_from_limited(Along(rho, limit), candidates, gaussian)
    most = max(Along(part * rho, limit).most for part in (0.25, 0.5, 1.0))
    assert 1 / candidates <= share <= math.exp(most) / candidates * (1 + 1e-9) or share == 1
    assert share <= 1.3 * gaussian + 1e-12


@given(st.floats(1e-3, 34), st.floats(0, 1))
def test_the_longest_features_are_the_worst(rho, part):
    limit = usual_limit(rho)
    longest, one = Along(rho, limit), Along(max(part * rho, 1e-4), limit)
    assert longest.mass <= one.mass * (1 + 1e-12) <= 1 + 1e-11
    assert one.raised <= longest.raised + 1e-12


@given(st.floats(1e-3, 34), st.integers(1, 2000), st.floats(0, 1))
def test_no_length_between_those_that_are_looked_at_tells_more(rho, features, part):
    certificate = Certificate.for_sigma(1 / rho, features=features)
    along = Along(max(part * rho, 1e-4), math.log(2) * certificate.limit)
    wider = max(0.0, Along(rho, along.limit).square - 1) / features
    told = along.information + features / 2 * (math.log1p(wider) - wider / (1 + wider))
    told -= wider / (1 + wider) / 2 * (along.square - 1)
    assert min(told, rho**2 / 2) <= certificate.bits * math.log(2) * (1 + 1e-6) + 1e-9
