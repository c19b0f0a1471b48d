"""Rows of two images: the bounds against densities on a grid, and against dp-accounting."""

import math

import numpy as np
import pytest
from scipy import stats

from mole.protection import Certificate

SETTINGS = [(1.0, 128), (0.25, 64), (4.0, 32), (8.0, 128)]
ALARMS = (0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0)


def two_rows(certificate, ratio=1.0):
    """Masses of rows of two images that point away from each other, on cells along their line.

    The other is `ratio` times as long. Nothing but the number along the line differs between the two.
    """
    rho = certificate.clip / certificate.sigma
    edges = np.linspace(-rho - 9, rho + 9, 40_001)
    w = (edges[1:] + edges[:-1]) / 2
    limit = math.log(2) * certificate.limit
    masses = []
    for at in (rho, -ratio * rho):
        density = stats.norm.pdf(w) * np.exp(np.clip(at * w - at**2 / 2, -limit, limit))
        masses.append(density / density.sum())
    return masses


def best_test(one, other):
    """False and right alarms of the best test, by Neyman and Pearson."""
    order = np.argsort(-(one / other), kind="stable")
    return np.cumsum(other[order]), np.cumsum(one[order])


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.05])
@pytest.mark.parametrize(("bits", "features"), SETTINGS)
def test_no_test_exceeds_the_bounds(bits, features, ratio):
    certificate = Certificate.for_bits(bits, features=features)
    apart = certificate.apart()
    for one, other in (two_rows(certificate, ratio), two_rows(certificate, ratio)[::-1]):
        false, right = best_test(one, other)
        for alarms in ALARMS:
            found = np.interp(alarms, np.concatenate([[0], false]), np.concatenate([[0], right]))
            assert found <= apart.detected(alarms) + 1e-3
        assert np.trapezoid(right, false) <= apart.ranked() + 1e-3
        for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
            delta = np.maximum(one - math.exp(epsilon) * other, 0).sum()
            assert delta <= apart.delta(epsilon) + 1e-6
        assert np.abs(np.log(one / other)).max() <= certificate.epsilon() + 1e-6


@pytest.mark.parametrize(("bits", "features"), SETTINGS)
def test_the_bounds_are_near_what_the_best_test_finds(bits, features):
    """For images at opposite ends; the negative twin of the test above: a little less would not hold."""
    certificate = Certificate.for_bits(bits, features=features)
    one, other = two_rows(certificate)
    false, right = best_test(one, other)
    apart = certificate.apart()
    assert apart.ranked() - np.trapezoid(right, false) < 0.05
    assert apart.detected(0.01) - np.interp(0.01, false, right) < 0.1
    assert certificate.epsilon() - np.log(one / other).max() < 0.1


@pytest.mark.parametrize(("bits", "features"), SETTINGS)
def test_epsilon_is_that_of_dp_accounting(bits, features):
    """Which is told the masses of the rows of two images, and works out their privacy loss by itself."""
    accounting = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    certificate = Certificate.for_bits(bits, features=features)
    logs = [dict(enumerate(np.log(masses))) for masses in two_rows(certificate)]
    loss = accounting.from_two_probability_mass_functions(
        *logs, pessimistic_estimate=False, value_discretization_interval=1e-3
    )
    assert loss.get_epsilon_for_delta(1e-12) == pytest.approx(certificate.epsilon(), abs=0.1)
    for epsilon in (0.5, 2.0):
        assert loss.get_delta_for_epsilon(epsilon) <= certificate.apart().delta(epsilon) + 1e-4


def test_the_curve_of_alarms_rises_and_ends_where_it_must():
    apart = Certificate.for_bits(1.0, features=128).apart()
    found = [apart.detected(alarms) for alarms in np.linspace(0, 1, 101)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0.0, 1.0)
    assert apart.delta(apart.epsilon) == 0.0 < apart.delta(apart.epsilon / 2) < apart.delta(0.01)


def test_rows_of_one_image_are_told_apart_more_easily_and_their_epsilons_add_up():
    one = Certificate.for_bits(0.1, features=64).apart()
    three = one.of_rows(3)
    assert three.epsilon == pytest.approx(3 * one.epsilon)
    assert one.detected(0.01) <= three.detected(0.01) <= 0.01 * math.exp(three.epsilon) * (1 + 1e-9)
    assert one.ranked() <= three.ranked() <= 1
