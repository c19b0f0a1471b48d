"""Lemma 1 by experiment: how often a random matrix of norm 1 lies near a given one, against the bound.

The share is also known exactly (an incomplete beta function), so that the experiment is tested too.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from mole.analysis.security import log2_near_guess_bound

SAMPLES = 100_000
STANDARD_ERRORS = 5
DISTANCES = (0.3, 0.5, 0.7, 0.9, 1.0)
ELEMENTS = range(2, 13)


def bound(elements: int, distance: float) -> float:
    return 2 ** log2_near_guess_bound(distance=distance, elements=elements)


def exact_share(elements: int, distance: float) -> float:
    """Share of the sphere within a straight-line distance of at most 1 of a point on it."""
    sine_squared = distance**2 * (1 - distance**2 / 4)
    return 0.5 * betainc((elements - 1) / 2, 0.5, sine_squared)


def slack(share: float) -> float:
    return STANDARD_ERRORS * math.sqrt(share * (1 - share) / SAMPLES)


def scaled(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def normal_rows(rng: np.random.Generator, elements: int) -> np.ndarray:
    return scaled(rng.normal(size=(SAMPLES, elements)))


def rows_of_rotations(rng: np.random.Generator, elements: int) -> np.ndarray:
    """First rows of random rotations: what a column of an orthogonal core is."""
    q, r = np.linalg.qr(rng.normal(size=(SAMPLES, elements, elements)))
    return (q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, np.newaxis, :])[:, 0]


def uniform_rows(rng: np.random.Generator, elements: int) -> np.ndarray:
    """Evenly from a cube around zero, then scaled: denser on the sphere towards the cube's corners."""
    return scaled(rng.uniform(-1, 1, size=(SAMPLES, elements)))


def positive_rows(rng: np.random.Generator, elements: int) -> np.ndarray:
    """Evenly between 0 and 1, as the matrices of the paper's authors: a corner of the sphere."""
    return scaled(rng.uniform(0, 1, size=(SAMPLES, elements)))


def measured_share(guesses: np.ndarray, target: np.ndarray, distance: float) -> float:
    return float(np.mean(np.linalg.norm(guesses - target, axis=1) <= distance))


@pytest.mark.parametrize("draw", [normal_rows, rows_of_rotations])
@pytest.mark.parametrize("elements", ELEMENTS)
def test_the_measured_share_is_exact_and_under_the_bound(rng, draw, elements):
    guesses, target = draw(rng, elements), normal_rows(rng, elements)[0]
    for distance in DISTANCES:
        share, expected = measured_share(guesses, target, distance), exact_share(elements, distance)
        assert abs(share - expected) <= slack(expected) + 1 / SAMPLES
        limit = bound(elements, distance)
        assert share <= limit + slack(limit)


@pytest.mark.parametrize("elements", ELEMENTS)
def test_for_evenly_spread_targets_uneven_guesses_stay_under_the_bound_too(rng, elements):
    guesses, targets = uniform_rows(rng, elements), normal_rows(rng, elements)
    for distance in DISTANCES:
        limit = bound(elements, distance)
        assert measured_share(guesses, targets, distance) <= limit + slack(limit)


def exceeds(guesses: np.ndarray, target: np.ndarray, elements: int) -> bool:
    """Whether the measured share is above the bound for this many elements, at any distance."""
    limits = {distance: bound(elements, distance) for distance in DISTANCES}
    return any(measured_share(guesses, target, d) > limit + slack(limit) for d, limit in limits.items())


@pytest.mark.parametrize("elements", ELEMENTS)
def test_matrices_that_are_not_spread_evenly_break_the_bound(rng, elements):
    """A negative twin: with elements between 0 and 1 the lemma's assumption fails, and so does it."""
    target = positive_rows(rng, elements)[0]
    assert exceeds(positive_rows(rng, elements), target, elements)
    assert not exceeds(normal_rows(rng, elements), target, elements)


@pytest.mark.parametrize("elements", ELEMENTS)
def test_a_wrong_exponent_would_be_found_out(rng, elements):
    """Another: who takes the side of a matrix for its number of elements has N^2 - 1 in the exponent."""
    assert exceeds(normal_rows(rng, elements), normal_rows(rng, elements)[0], elements**2)


@given(st.integers(2, 400), st.floats(0.01, 1.0))
def test_the_exact_share_is_never_above_the_bound(elements, distance):
    assert exact_share(elements, distance) <= bound(elements, distance) * (1 + 1e-9)


@pytest.mark.parametrize("distance", DISTANCES)
def test_in_two_and_three_dimensions_the_share_is_school_geometry(distance):
    assert exact_share(2, distance) == pytest.approx(2 * math.asin(distance / 2) / math.pi)
    assert exact_share(3, distance) == pytest.approx(distance**2 / 4)
