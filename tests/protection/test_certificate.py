"""The certificate's formulas against calculations of another kind: water-filling, accounting, attacks.

Certificates without a limit are those of Gaussian noise, as deliveries before version 0.10 have them.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mole.errors import ParameterError
from mole.protection import Certificate, FreshNoise, bits_of_covariance, composed, release

CERTIFICATES = st.builds(
    Certificate,
    features=st.integers(1, 512),
    clip=st.floats(1e-3, 1e3),
    sigma=st.floats(1e-3, 1e3),
)


def water_filling(variances: np.ndarray, sigma: float, power: float) -> float:
    """Capacity of parallel channels with these gains, by filling power into them: bits."""
    noise = np.sort(sigma**2 / variances)
    for used in range(len(noise), 0, -1):
        level = (power + noise[:used].sum()) / used
        if level > noise[used - 1]:
            return float(np.log2(level / noise[:used]).sum() / 2)
    raise AssertionError("there is always one channel that is used")


@given(CERTIFICATES)
def test_bits_are_those_of_equal_channels_and_below_the_limit(certificate):
    equal = water_filling(np.ones(certificate.features), certificate.sigma, certificate.clip**2)
    assert certificate.bits == pytest.approx(equal, rel=1e-9)
    assert certificate.bits <= certificate.bits_of_many * (1 + 1e-12)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-200, 1e200, math.inf, math.nan])
@pytest.mark.parametrize("name", ["clip", "sigma"])
def test_what_no_formula_can_work_with_is_refused(name, value):
    """A manifest may hold any number; none of them may end in an overflow."""
    with pytest.raises(ParameterError, match=f"{name} is a number from 1e-60 to 1e"):
        Certificate(**{"features": 4, "clip": 1.0, "sigma": 1.0} | {name: value})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("clip", "sigma"), [(1e-60, 1e60), (1e60, 1e-60), (1.0, 1e-60)])
def test_the_extremes_that_are_left_end_in_numbers(clip, sigma):
    one = Certificate(features=4, clip=clip, sigma=sigma)
    told = (
        one.bits, one.mu, one.epsilon(1e-5), one.identification(1000), one.apart().ranked(),
        one.apart().detected(0.01),
    )  # fmt: skip
    assert all(math.isfinite(value) and value >= 0 for value in told)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_two_images_as_far_apart_as_can_be_are_told_apart_as_often_as_the_bounds_say(sigma):
    """Antipodes at the clip meet both bounds; nothing that lies nearer exceeds them."""
    apart, rng = Certificate(features=2, clip=3.0, sigma=sigma).apart(), np.random.default_rng(0)
    some, others = (sign * 3.0 + sigma * rng.normal(size=40_000) for sign in (1, -1))
    assert apart.ranked() == pytest.approx((some > others).mean(), abs=0.01)
    limit = np.quantile(others, 0.99)
    assert apart.detected(0.01) == pytest.approx((some > limit).mean(), abs=0.02)
    assert (some - 1 > limit).mean() <= apart.detected(0.01) + 0.02


@given(st.integers(1, 24), st.integers(0, 2**32), st.floats(0.05, 20))
def test_no_covariance_of_clipped_features_exceeds_the_bound(features, seed, sigma):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, features)) * rng.exponential(size=features)
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    covariance = np.cov(rows.T).reshape(features, features)
    assert bits_of_covariance(covariance, sigma) <= Certificate(features, 1.0, sigma).bits * (1 + 0.01)


@given(st.floats(1e-3, 200), st.integers(1, 512), st.floats(1e-2, 1e2))
def test_sigma_for_bits_gives_those_bits(bits, features, clip):
    made = Certificate.for_bits(bits, features=features, clip=clip)
    assert made.bits == pytest.approx(bits, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.3, 0.847, 2.0, 10.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_epsilon_is_dp_accountings(sigma, delta):
    accounting = pytest.importorskip("dp_accounting")
    certificate = Certificate(features=128, clip=1.0, sigma=sigma)
    epsilon = certificate.epsilon(delta)
    assert certificate.apart().delta(epsilon) == pytest.approx(delta, rel=1e-3)
    accountant = accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(accounting.GaussianDpEvent(sigma / 2))  # any two images are 2 C apart
    assert epsilon == pytest.approx(accountant.get_epsilon(delta), rel=0.02, abs=0.02)


@pytest.mark.parametrize("limit", [0.0, -1.0, 1e-300, 3.9, 1001.0, math.inf, math.nan])
def test_a_limit_that_the_formulas_are_not_for_is_refused(limit):
    """Below the usual one, 3.98 bits here, the longest features are not the worst."""
    with pytest.raises(ParameterError, match="limit is a number of bits from 3"):
        Certificate(128, 1.0, 0.82, limit)
    assert Certificate(128, 1.0, 0.82, 4.0).bits < Certificate(128, 1.0, 0.82).bits * 1.05
    with pytest.raises(ParameterError, match="too small for a limit"):
        Certificate(128, 1.0, 1e-3, 900.0)


@pytest.mark.parametrize("epsilon", [1e-5, 0.003, 1.0, 30.0])
def test_noise_for_epsilon_gives_that_epsilon(epsilon):
    assert Certificate.for_epsilon(epsilon, features=64).epsilon() == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, -1.0, math.nan, math.inf])
def test_an_epsilon_that_nothing_gives_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon is a number of at least 1e-05"):
        Certificate.for_epsilon(epsilon, features=64)


@pytest.mark.parametrize(("features", "bits"), [(1, 2.0), (2, 4.0), (8, 4.0)])
def test_few_features_are_hardly_picked_out_more_often_than_with_gaussian_noise(features, bits):
    limited = Certificate.for_bits(bits, features=features)
    gaussian = Certificate(features, limited.clip, limited.sigma)
    assert limited.identification(1000) <= 1.2 * gaussian.identification(1000) + 0.001


@pytest.mark.parametrize("wrong", [{"features": 0}, {"clip": 0.0}, {"sigma": -1.0}, {"sigma": math.nan}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ParameterError):
        Certificate(**{"features": 8, "clip": 1.0, "sigma": 1.0, **wrong})
    with pytest.raises(ParameterError, match="bits must be a positive number"):
        Certificate.for_bits(0, features=8)


def test_rows_of_one_image_add_up():
    """As one row with less noise would tell: never more than the sum."""
    one = Certificate(64, 1.0, 0.85)
    four = Certificate(64, 1.0, one.sigma / 2)  # the mean of four rows
    both = composed([one] * 4)
    assert four.bits <= both.bits == pytest.approx(4 * one.bits)
    assert both.maximal_leakage == both.epsilon == math.inf
    assert one.apart(4).ranked() == four.apart().ranked() > one.apart().ranked()
    limited = Certificate.for_bits(1.0, features=64)
    all_four = composed([limited] * 4)
    assert all_four.bits == pytest.approx(4.0)
    assert all_four.maximal_leakage == pytest.approx(4 * limited.maximal_leakage)
    assert limited.apart(4).epsilon == pytest.approx(all_four.epsilon)


def best_attacker(rng, certificate: Certificate, candidates: int, tries: int) -> float:
    """How often the nearest noise-free candidate is the right one, which no attacker beats.

    All are as long as the clip, where the nearest is the likeliest, be noise limited or not.
    """
    known = rng.normal(size=(tries, candidates, certificate.features))
    known /= np.linalg.norm(known, axis=2, keepdims=True)
    rows = release(known[:, 0], certificate, FreshNoise())
    return float((np.einsum("ncd,nd->nc", known, rows).argmax(axis=1) == 0).mean())


GRID = [(features, bits, count) for features in (8, 64) for bits in (0.5, 2.0, 8.0) for count in (10, 300)]


@pytest.mark.parametrize("is_limited", [True, False], ids=["limited", "Gaussian"])
@pytest.mark.parametrize(("features", "bits", "candidates"), GRID)
def test_the_best_attacker_stays_below_the_bound(rng, features, bits, candidates, is_limited):
    certificate = Certificate.for_bits(bits, features=features)
    certificate = certificate if is_limited else replace(certificate, limit=None)
    found = best_attacker(rng, certificate, candidates, tries=400)
    bound = certificate.identification(candidates)
    assert found <= bound + 3 * math.sqrt(bound / 400)
    assert bound >= 1 / candidates


@pytest.mark.parametrize("features", [2, 128, 4096, 1 << 20])
@pytest.mark.parametrize("bits", [1e-6, 1.0, 8.0])
def test_more_candidates_never_make_it_easier_and_two_are_told_apart_as_often_as_can_be(features, bits):
    """With many features or hardly any bits, a non-central chi-squared distribution is beyond SciPy."""
    certificate = Certificate.for_bits(bits, features=features)
    ends = np.zeros((max(4, 4000 // features), features))
    ends[::2, 0], ends[1::2, 0] = 1, -1
    bounds = [certificate.identification(count) for count in (1, 2, 1000, 10**12)]
    assert bounds[0] == 1
    assert bounds == sorted(bounds, reverse=True)
    right = (release(ends, certificate, FreshNoise()) * ends).sum(axis=1) > 0
    assert bounds[1] >= right.mean() - 6 * math.sqrt(0.25 / len(ends))
    assert bounds[2] < 0.8 or features < 8


def test_hardly_anything_changes_with_more_features_than_are_worked_out():
    few, many = (Certificate.for_bits(1.0, features=count).identification(1000) for count in (256, 1 << 18))
    assert few == pytest.approx(many, rel=0.03)


def test_without_noise_the_check_fails(rng):
    """The negative twin: the same attacker, and the noise left out."""
    certificate = Certificate.for_bits(1.0, features=64)
    without = replace(certificate, sigma=1e-9, limit=None)
    assert best_attacker(rng, without, 300, tries=50) == 1.0 > 5 * certificate.identification(300)
