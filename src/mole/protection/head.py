"""A linear classifier learned from noisy features, for use on clean ones.

Rows are features plus noise of a known size. Whoever fits an ordinary classifier to them gets one that
expects noise: its weights are too small for clean features, so that it prefers whatever class is most
frequent. Here the noise is taken out of the moments instead (errors in variables): class means stay, and
the covariance within classes is that of noisy rows less that of the noise. What is left is a linear
discriminant of clean features.

With much noise little more than the class means can be learned, so both are shrunk: the means towards each
other, by as much as noise alone drives them apart, and the covariance towards a multiple of the identity.
How far, is decided by how well labels are told from noisy rows that were held out. In the few directions
that tell classes apart the covariance is then taken once more, by itself: there it can be known well, and
it decides how sure the classifier is, together with the labels of rows that were held out.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.protection.spikes import without_noise
from mole.scheme.shapes import Array

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
FOLDS = 4  # parts, of which each is held out once
TARGETS = (1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.0)  # shares of the covariance that are a multiple of I
WIDER = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0)  # by how much classes may be wider than Gaussians of that covariance
BY_CHANCE = 2.0  # of a logarithm of likelihoods: less of a gain is none
TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Head:
    """A linear classifier of features.

    >>> head = Head(np.eye(2), np.zeros(2))
    >>> head.probabilities(np.array([[0.0, 0.0], [math.log(3), 0.0]]))
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])

    Attributes:
        weight: (classes, d).
        intercept: (classes,).
    """

    weight: Floats
    intercept: Floats

    @property
    def classes(self) -> int:
        """How many classes it tells apart."""
        return len(self.intercept)

    def scores(self, features: Array) -> Floats:
        """Logarithms of probabilities, up to a number of each row: (n, d) to (n, classes)."""
        return np.asarray(features @ self.weight.T + self.intercept, np.float64)

    def probabilities(self, features: Array) -> Floats:
        """How likely each class is, (n, classes)."""
        return softmax(self.scores(features))


def fit_noisy_head(features: Array, labels: npt.NDArray[np.integer], sigma: float, classes: int) -> Head:
    """Fit a linear classifier of clean features to noisy ones.

        channel = KnownChannel(certificate)
        head = fit_noisy_head(channel.unbiased(noisy), labels, channel.spread, classes=10)
        head.probabilities(clean)

    It is the same in any orthonormal coordinates: of morphed rows it is the classifier of plain ones.

    Args:
        features: noisy rows, (n, d).
        labels: the class of each, (n,), from 0.
        sigma: standard deviation of the noise in each number; 0 for none.
        classes: how many there are; one without rows is as good as never chosen.

    Raises:
        ParameterError: if there are fewer than two classes with rows, or too few rows.
    """
    rows, truth = _checked(features, labels, sigma, classes)
    folds = np.arange(len(rows)) % FOLDS
    parts = [
        (Learnt.of(rows[folds != one], truth[folds != one], sigma, classes), folds == one)
        for one in range(FOLDS)
    ]

    def told(head: Head, out: npt.NDArray[np.bool_]) -> float:
        """How well labels are told from rows that were held out: the logarithm of their likelihood."""
        chances = head.probabilities(rows[out])[np.arange(out.sum()), truth[out]]
        return float(np.log(np.maximum(chances, TINY)).sum())

    gains = [sum(told(part.noisy_head(target), out) for part, out in parts) for target in TARGETS]
    best = TARGETS[int(np.argmax(gains))]
    wider = [sum(told(part.clean_head(best, by, noise=sigma), out) for part, out in parts) for by in WIDER]
    by = WIDER[int(np.argmax(wider))] if max(wider) > wider[0] + BY_CHANCE else WIDER[0]
    return Learnt.of(rows, truth, sigma, classes).clean_head(best, by)


@dataclass(frozen=True, eq=False)
class Learnt:
    """What noisy rows tell of the classes of clean ones.

    Attributes:
        sigma: the noise.
        shares: logarithms of how frequent the classes are.
        means: their means, shrunk, less the mean of them all, (classes, d).
        centre: the mean of them all, (d,).
        doubt: the variance that is left in each number of a mean, for the average row.
        within: covariance of noisy rows within classes, (d, d).
        freedom: how many rows that is taken from, less the means.
    """

    sigma: float
    shares: Floats
    means: Floats
    centre: Floats
    doubt: float
    within: Floats
    freedom: float

    @classmethod
    def of(cls, rows: Floats, labels: Labels, sigma: float, classes: int) -> "Learnt":
        """Learn from rows, (n, d)."""
        size = rows.shape[1]
        counts = np.bincount(labels, minlength=classes).astype(np.float64)
        there = counts > 0
        sums = np.zeros((classes, size))
        np.add.at(sums, labels, rows)
        means = sums / np.maximum(counts, 1)[:, None]
        freedom = max(counts.sum() - there.sum(), 1.0)
        within = (rows.T @ rows - means.T @ sums) / freedom
        centre = means[there].mean(axis=0)
        kept, errors = _kept(means[there] - centre, counts[there], float(np.trace(within)) / size)
        apart = np.zeros_like(means)
        apart[there] = kept[:, None] * (means[there] - centre)
        doubt = float((counts[there] * kept * errors).sum() / counts.sum())
        shares = np.log((counts + there) / (counts + there).sum() + TINY)
        return cls(sigma, shares, apart, centre, doubt, within, freedom)

    def noisy_head(self, target: float) -> Head:
        """The best classifier of noisy rows: what can be tried on rows that were held out."""
        covariance = self._covariance(self._spectrum, target) + self.sigma**2 * np.eye(len(self.within))
        return self._head(self.means, covariance, np.eye(len(self.within)))

    def clean_head(self, target: float, wider: float = 1.0, noise: float = 0.0) -> Head:
        """The best classifier of clean rows.

        Args:
            target: how far the covariance is drawn towards a multiple of the identity, from 0 to 1.
            wider: what it is multiplied by at the end; more makes the classifier less sure.
            noise: of rows to try it on, in the directions that are best without any.
        """
        weight = np.linalg.solve(self._covariance(self._spectrum, target), self.means.T)
        basis, lengths, _ = np.linalg.svd(weight, full_matrices=False)
        telling = basis[:, lengths > 1e-9 * lengths[0]]  # directions that tell classes apart
        covariance = wider * self._covariance(np.linalg.eigh(telling.T @ self.within @ telling), 0.0)
        covariance += noise**2 * np.eye(len(covariance))
        return self._head(self.means @ telling, covariance, telling)

    @functools.cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """Variances of noisy rows within classes, and their directions: the slow part, done once."""
        values, directions = np.linalg.eigh(self.within)
        return values, directions

    def _covariance(self, noisy: tuple[Floats, Floats], target: float) -> Floats:
        """The covariance of clean features within classes, and what is in doubt of the means.

        Args:
            noisy: variances of noisy rows, and their directions.
            target: how far it is drawn towards a multiple of the identity.
        """
        values, directions = noisy
        if not len(values):
            return directions  # nothing tells classes apart
        clean = without_noise(values, self.sigma, self.freedom)
        clean = (1 - target) * clean + target * clean.mean() + self.doubt
        return np.asarray((directions * clean) @ directions.T)

    def _head(self, means: Floats, covariance: Floats, directions: Floats) -> Head:
        """The linear discriminant of Gaussians that differ in their means, in some directions, (d, r)."""
        inside = np.linalg.solve(covariance, means.T).T
        weight = inside @ directions.T
        intercept = self.shares - (inside * means).sum(axis=1) / 2 - weight @ self.centre
        return Head(weight, intercept)


def _kept(apart: Floats, counts: Floats, variance: float) -> tuple[Floats, Floats]:
    """How much of each class mean is no noise (James and Stein), and the variance of noise in each mean."""
    errors = variance / counts
    found = np.square(apart).sum() / (apart.shape[1] * max(len(apart) - 1, 1)) - errors.mean()
    spread = max(float(found), 0.0)
    return spread / (spread + errors + TINY), errors


def softmax(scores: Floats) -> Floats:
    """Probabilities of scores, row by row."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _checked(
    features: Array, labels: npt.NDArray[np.integer], sigma: float, classes: int
) -> tuple[Floats, Labels]:
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ShapeError(f"features {features.shape} and labels {labels.shape} do not go together")
    if not 0 <= sigma < math.inf:
        raise ParameterError(f"noise has a standard deviation of at least 0, not {sigma}")
    truth = labels.astype(np.int64)
    if len(truth) and not 0 <= truth.min() <= truth.max() < classes:
        raise ParameterError(f"labels are numbers from 0 to {classes - 1}")
    known = int((np.bincount(truth, minlength=1) > 0).sum())
    if known < 2 or len(truth) < FOLDS * known:
        raise ParameterError(
            f"a classifier cannot be learned from {len(truth)} rows of {known} classes: give more"
        )
    if not np.isfinite(features).all():
        raise ParameterError("features have a NaN or an infinity")
    return features.astype(np.float64), truth
