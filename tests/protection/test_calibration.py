"""Calibration finds the scale and the intercepts that a head should have had."""

import numpy as np
import pytest

from mole.errors import ParameterError
from mole.protection.calibration import best_threshold, calibration, held_out
from mole.protection.head import Head, softmax


def drawn(scores, rng):
    """Labels that are as likely as these scores say."""
    return np.array([rng.choice(len(row), p=row) for row in softmax(scores)])


@pytest.mark.parametrize("classes", [2, 5])
def test_what_was_done_to_right_scores_is_undone(rng, classes):
    right = 2 * rng.normal(size=(4_000, classes))
    labels = drawn(right, rng)
    wrong = (right - np.linspace(-1, 1, classes)) / 30
    found = calibration(wrong, labels)
    assert found.factor == pytest.approx(30, rel=0.1)
    assert np.abs(found.probabilities(wrong) - softmax(right)).max() < 0.08
    head = found.apply(Head(np.eye(classes), np.zeros(classes)))
    assert np.allclose(head.probabilities(wrong), found.probabilities(wrong))


def test_a_head_that_is_right_stays_as_it_is(rng):
    right = 2 * rng.normal(size=(4_000, 3))
    assert calibration(right, drawn(right, rng)).factor == pytest.approx(1, abs=0.1)


def test_a_head_that_knows_nothing_becomes_the_shares(rng):
    labels = rng.choice(3, 3_000, p=[0.6, 0.3, 0.1])
    found = calibration(50 * rng.normal(size=(3_000, 3)), labels)
    assert np.allclose(found.probabilities(np.zeros((1, 3))), [[0.6, 0.3, 0.1]], atol=0.05)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_classes_that_are_told_apart_without_fault_have_an_end(rng, scale):
    labels = np.arange(60) % 2
    found = calibration(scale * np.stack([1.0 - labels, labels], axis=1), labels)
    assert np.isfinite(found.factor)
    assert np.isfinite(found.intercepts).all()
    assert 0.4 < found.threshold < 0.6


def test_of_many_classes_only_the_factor_is_fitted(rng):
    right = 3 * rng.normal(size=(600, 300))
    found = calibration(right / 10, drawn(right, rng))
    assert found.factor == pytest.approx(10, rel=0.2)
    assert not found.intercepts.any()


@pytest.mark.parametrize(
    ("labels", "can"),
    [([0] * 38 + [1, 2], True), ([*range(40)], True), ([0, 1] * 20, True), ([0] * 39 + [1], False)],
)
def test_a_part_leaves_two_classes_to_learn_from(labels, can):
    parts = held_out(np.array(labels))
    assert (parts is not None) == can
    if parts is not None:
        assert np.bincount(parts).tolist() == [8] * 5


def test_one_class_decides_nothing(rng):
    with pytest.raises(ParameterError, match="two classes or more"):
        calibration(rng.normal(size=(30, 2)), np.zeros(30, np.int64))


def test_the_threshold_is_the_best_there_is(rng):
    labels = rng.integers(0, 2, 400)
    chances = (0.2 * labels + 0.1 * rng.normal(size=400) + 0.1).clip(0, 1)
    found = ((chances >= best_threshold(chances, labels)) == labels).mean()
    assert found == max(((chances >= one) == labels).mean() for one in np.linspace(0, 1, 5_001))
    assert found > 0.8 > ((chances >= 0.5) == labels).mean()


def test_the_threshold_does_not_follow_chance(rng):
    moved = [best_threshold(rng.random(200), rng.integers(0, 2, 200)) != 0.5 for _ in range(100)]
    assert np.mean(moved) < 0.2
