"""Makes probabilities right on labelled data of one's own: a temperature, and an intercept for each class.

A head that was trained elsewhere, on other data or on noisy data, may rank well and still be too sure of
itself, or expect other shares of classes. With scores s, probabilities become softmax(t s + b): a few
numbers, which a few hundred labelled images decide.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError
from mole.protection.head import Head, softmax

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
STEPS = 50
RIDGE = 1e-2  # draws to t = 1 and b = 0 as a hundredth of a row would, so that an end is always found
COLDEST = 1e-3
EVEN = 0.5  # the threshold of two classes unless another one is better
BY_CHANCE = 2.0  # standard deviations
FOLDS = 5  # parts, of which each is held out once
MOST_INTERCEPTS = 256  # of more classes only the temperature is fitted


def held_out(labels: Labels) -> Labels | None:
    """The part in which each row is held out, (n,): of every class as many in each, as far as that goes.

    >>> held_out(np.array([0, 1, 0, 1, 0, 1])).tolist()
    [0, 3, 1, 4, 2, 0]

    None where a part would hold out all but one class.

    Raises:
        ParameterError: if fewer than two classes occur.
    """
    _check_classes(labels)
    parts = np.empty(len(labels), np.int64)
    parts[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % FOLDS
    left = (np.unique(labels[parts != part]) for part in range(FOLDS))
    return parts if all(len(classes) > 1 for classes in left) else None


@dataclass(frozen=True, eq=False)
class Calibration:
    """What scores are multiplied by, what is added to each class, and the threshold of two classes."""

    factor: float
    intercepts: Floats
    threshold: float = EVEN

    def probabilities(self, scores: Floats) -> Floats:
        """Calibrated probabilities of scores, (n, classes)."""
        return softmax(self.factor * scores + self.intercepts)

    def apply(self, head: Head) -> Head:
        """The head that gives such probabilities itself."""
        return Head(self.factor * head.weight, self.factor * head.intercept + self.intercepts)


def calibration(scores: Floats, labels: Labels) -> Calibration:
    """The scaling that makes labels most likely, and then the best threshold, if there are two classes.

    >>> scores = np.array([[4.0, -4.0], [4.0, -4.0], [4.0, -4.0], [-4.0, 4.0]] * 50)
    >>> labels = np.array([0, 0, 1, 1] * 50)
    >>> calibration(scores, labels).probabilities(scores[:1]).round(2)  # right two times out of three
    array([[0.67, 0.33]])

    Args:
        scores: what a head gives, (n, classes).
        labels: the class of each row, (n,).

    Raises:
        ParameterError: if fewer than two classes occur.
    """
    found = _scaling(scores, labels)
    if scores.shape[1] != 2:
        return found
    return replace(found, threshold=best_threshold(found.probabilities(scores)[:, 1], labels))


def _check_classes(labels: Labels) -> None:
    if len(np.unique(labels)) < 2:
        raise ParameterError("a head is calibrated on images of two classes or more: give such images")


def _scaling(scores: Floats, labels: Labels) -> Calibration:
    """The most likely scaling, by Newton's method."""
    classes = scores.shape[1]
    _check_classes(labels)
    centred = scores - scores.mean(axis=1, keepdims=True)
    unit = float(np.abs(centred).max()) or 1.0  # so that numbers of any size do
    centred = centred / unit
    free = classes if classes <= MOST_INTERCEPTS else 0
    found, start = np.zeros(1 + free), np.zeros(1 + free)
    found[0] = start[0] = unit
    truth = np.eye(classes)[labels]
    for _ in range(STEPS):
        slope, curvature = _derivatives(found, centred, truth, free)
        slope += RIDGE * (start - found) / np.array([unit**2, *np.ones(free)])
        curvature += RIDGE * np.diag([1 / unit**2, *np.ones(free)])
        step = np.asarray(np.linalg.solve(curvature, slope), np.float64)
        length = _step_length(found, step, centred, labels, free)
        found = found + length * step
        if np.abs(length * step).max() <= 1e-9 * (1 + np.abs(found).max()):
            break
    intercepts = found[1:] if free else np.zeros(classes)
    return Calibration(max(float(found[0]) / unit, COLDEST), np.asarray(intercepts))


def _scaled(found: Floats, scores: Floats, free: int) -> Floats:
    return np.asarray(found[0] * scores + (found[1:] if free else 0), np.float64)


def _derivatives(found: Floats, scores: Floats, truth: Floats, free: int) -> tuple[Floats, Floats]:
    """First and second derivative (with the other sign) of the log-likelihood, by t and b."""
    chances = softmax(_scaled(found, scores, free))
    left = truth - chances
    expected = (chances * scores).sum(axis=1, keepdims=True)
    by_factor = chances * (scores - expected)  # how chances change with t
    curvature = np.zeros((1 + free, 1 + free))
    slope = np.zeros(1 + free)
    slope[0], curvature[0, 0] = (left * scores).sum(), (by_factor * scores).sum()
    if free:
        slope[1:] = left.sum(axis=0)
        curvature[0, 1:] = curvature[1:, 0] = by_factor.sum(axis=0)
        curvature[1:, 1:] = np.diag(chances.sum(axis=0)) - chances.T @ chances
    return slope, curvature


def _step_length(found: Floats, step: Floats, scores: Floats, labels: Labels, free: int) -> float:
    """A whole step, or half of it, until labels are no less likely than before."""

    def likelihood(at: Floats) -> float:
        chances = softmax(_scaled(at, scores, free))[np.arange(len(labels)), labels]
        return float(np.log(np.maximum(chances, 1e-300)).sum())

    before, length = likelihood(found), 1.0
    while length > 1e-6 and likelihood(found + length * step) < before - 1e-3:
        length /= 2
    return length


def best_threshold(chances: Floats, labels: Labels) -> float:
    """The probability of the second of two classes from which it is the answer most often rightly.

    >>> best_threshold(np.array([0.1, 0.2, 0.3, 0.4] * 10), np.array([0, 0, 1, 1] * 10))
    0.25
    >>> best_threshold(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 0, 1, 1]))  # that could be chance
    0.5

    It is a half unless another one gains more answers than chance does, where so many change. Of several
    that are as good, the one nearest to a half.
    """
    values = np.unique(chances)
    tried = np.array([EVEN, *(values[1:] + values[:-1]) / 2])
    zeros, ones = (np.sort(chances[labels == one]) for one in (0, 1))
    below = [np.searchsorted(part, tried) for part in (zeros, ones)]
    right = below[0] + len(ones) - below[1]
    changed = np.abs(below[0] + below[1] - below[0][0] - below[1][0])
    gained = right - right[0]
    best = tried[(right == right.max()) & (gained > BY_CHANCE * np.sqrt(changed))]
    return float(best[np.argmin(np.abs(best - EVEN))]) if len(best) else EVEN
