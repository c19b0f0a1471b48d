"""Intervals of measured figures: the textbook's, and wide enough."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from mole.audit.intervals import CONFIDENCE, area_between, detected, share_of


@pytest.mark.parametrize(("hits", "count"), [(0, 50), (3, 1000), (500, 1000), (50, 50)])
def test_a_share_has_the_exact_interval_of_the_textbook(hits, count):
    measured = share_of(hits, count)
    exact = binomtest(hits, count).proportion_ci(CONFIDENCE, "exact")
    assert (measured.low, measured.high) == pytest.approx((exact.low, exact.high))
    assert measured.value == hits / count


def test_an_area_is_the_share_of_pairs_in_order_and_half_of_those_that_are_equal(rng):
    some, others = rng.integers(0, 9, 70), rng.integers(0, 7, 50)
    pairs = (some[:, None] > others).mean() + (some[:, None] == others).mean() / 2
    assert area_between(some, others).value == pytest.approx(pairs)
    assert area_between(others, some).value == pytest.approx(1 - pairs)


def test_the_interval_of_an_area_holds_the_true_one(rng):
    true = norm.cdf(1 / np.sqrt(2))
    for _ in range(50):
        found = area_between(1 + rng.normal(size=120), rng.normal(size=80))
        assert found.low <= true <= found.high
        assert found.high - found.low < 0.35
    perfect = area_between(np.arange(10.0) + 100, np.arange(20.0))
    assert perfect.value == perfect.high == 1
    assert 0.4 < perfect.low < 0.6  # ten against twenty are few


def test_what_is_told_at_few_false_alarms(rng):
    """Two normal distributions that are 2 apart; with few negatives nobody is sure of anything."""
    true = norm.cdf(norm.ppf(0.01) + 2)
    for _ in range(10):
        found = detected(2 + rng.normal(size=1500), rng.normal(size=1500))
        assert 0 < found.low <= true <= found.high < 1
        assert found.low <= found.value <= found.high
    few = detected(2 + rng.normal(size=1500), rng.normal(size=100))
    assert few.low == 0
