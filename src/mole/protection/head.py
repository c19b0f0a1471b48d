"""A linear classifier learnt from noisy features, for use on clean ones.

Rows are features plus Gaussian noise of a known size. Whoever fits an ordinary classifier to them gets one
that expects noise: its weights are too small for clean features, and its intercepts are wrong where classes
are not equally frequent. Here the noise is taken out of the moments instead (errors in variables): class
means stay, and the covariance within classes is that of noisy rows less sigma^2 I. What is left is a linear
discriminant of clean features.

With much noise little more than the class means can be learnt, so both are shrunk: the means towards each
other, by as much as the noise alone would drive them apart, and the covariance towards a multiple of the
identity. How far, is decided by how well held-out labels are told from held-out noisy rows.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.scheme.shapes import Array

Floats = npt.NDArray[np.float64]
FOLDS = 4  # parts, of which each is held out once
TARGETS = (1.0, 0.9, 0.7, 0.4, 0.2, 0.1, 0.05, 0.0)  # share of the covariance that is a multiple of I
LEAST = 1e-6  # of the variance of noisy features: no direction of clean ones has less


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

    def scores(self, features: Array) -> Floats:
        """Logarithms of probabilities, up to a number of each row: (n, d) to (n, classes)."""
        return np.asarray(features @ self.weight.T + self.intercept, np.float64)

    def probabilities(self, features: Array) -> Floats:
        """What each class is worth, (n, classes)."""
        return softmax(self.scores(features))


@dataclass(frozen=True, eq=False)
class Moments:
    """What noisy rows tell of each class: counts (classes,), means (classes, d), scatter within (d, d)."""

    counts: Floats
    means: Floats
    scatter: Floats

    @classmethod
    def of(cls, features: Floats, labels: npt.NDArray[np.int64], classes: int) -> "Moments":
        """The moments of rows, (n, d)."""
        counts = np.bincount(labels, minlength=classes).astype(np.float64)
        sums = np.zeros((classes, features.shape[1]))
        np.add.at(sums, labels, features)
        means = sums / np.maximum(counts, 1)[:, None]
        scatter = features.T @ features - (means * counts[:, None]).T @ means
        return cls(counts, means, scatter)


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Clean classes as Gaussians: logarithms of their shares, means, and one covariance."""

    shares: Floats
    means: Floats
    covariance: Floats

    def head(self, noise: float = 0.0) -> Head:
        """The best classifier of features with so much noise; without any by default."""
        covariance = self.covariance + noise**2 * np.eye(len(self.covariance))
        weight = np.linalg.solve(covariance, self.means.T).T
        return Head(weight, self.shares - (weight * self.means).sum(axis=1) / 2)


def fit_noisy_head(features: Array, labels: npt.NDArray[np.integer], sigma: float, classes: int) -> Head:
    """Fit a linear classifier of clean features to noisy ones.

        head = fit_noisy_head(noisy, labels, certificate.sigma, classes=10)
        head.probabilities(clean)

    Args:
        features: noisy rows, (n, d).
        labels: the class of each, (n,), from 0.
        sigma: standard deviation of the noise in each number; 0 for none.
        classes: how many there are; one without rows is never chosen.

    Raises:
        ParameterError: if there are fewer than two classes with rows, or too few rows.
    """
    rows, truth = _checked(features, labels, sigma, classes)
    folds = np.arange(len(rows)) % FOLDS
    scores = np.zeros(len(TARGETS))
    for fold in range(FOLDS):
        out = folds == fold
        learnt = Moments.of(rows[~out], truth[~out], classes)
        for index, target in enumerate(TARGETS):
            held = clean_model(learnt, sigma, target).head(noise=sigma)
            chances = held.probabilities(rows[out])[np.arange(out.sum()), truth[out]]
            scores[index] += np.log(np.maximum(chances, 1e-30)).sum()
    best = TARGETS[int(np.argmax(scores))]
    return clean_model(Moments.of(rows, truth, classes), sigma, best).head()


def clean_model(noisy: Moments, sigma: float, target: float) -> Gaussians:
    """Gaussians of clean features, from the moments of noisy ones.

    Args:
        noisy: the moments.
        sigma: the noise in them.
        target: how far the covariance is drawn towards a multiple of the identity, from 0 to 1.
    """
    size, there = noisy.means.shape[1], noisy.counts > 0
    freedom = max(noisy.counts.sum() - there.sum(), 1)
    values, directions = np.linalg.eigh(noisy.scatter / freedom)
    variance = float(values.mean())  # of noisy rows, in each number
    means, doubt = _shrunk_means(noisy, variance)
    least = max(variance * math.sqrt(2 / (freedom * size)), LEAST * variance)  # what noise alone can be
    clean = _without_noise(values, sigma, size / freedom, least)
    clean = (1 - target) * clean + target * max(clean.mean(), least) + doubt
    shares = np.where(there, np.log(np.maximum(noisy.counts, 1) / noisy.counts.sum()), -np.inf)
    return Gaussians(shares, means, (directions * clean) @ directions.T)


def _without_noise(values: Floats, sigma: float, gamma: float, least: float) -> Floats:
    """Variances of clean features along the directions of noisy ones, given those of noisy ones, rising.

    With d / n = gamma, the variances of pure noise are smeared out up to (1 + sqrt(gamma))^2 of it. What
    stands out is too large by a known amount, and its direction is wrong by a known angle (the spiked
    model; Donoho, Gavish and Johnstone, 2018). What does not stand out gets its mean.
    """
    found, rest = np.full(len(values), least), values
    while len(rest):
        base = float(rest.mean())
        if rest[-1] <= base * (1 + math.sqrt(gamma)) ** 2:
            found[: len(rest)] = max(base - sigma**2, least)
            break
        ratio = rest[-1] / base
        middle = ratio + 1 - gamma
        true = (middle + math.sqrt(max(middle**2 - 4 * ratio, 0))) / 2
        cosine = max((1 - gamma / (true - 1) ** 2) / (1 + gamma / (true - 1)), 0.0) if true > 1 else 0.0
        found[len(rest) - 1] = max(base * (1 + (true - 1) * cosine) - sigma**2, least)
        rest = rest[:-1]
    return found


def _shrunk_means(noisy: Moments, variance: float) -> tuple[Floats, float]:
    """Class means, drawn together by what noise alone would drive them apart, and what is in doubt.

    The doubt is the variance that is left in each number of a mean, for the average row.
    """
    there = noisy.counts > 0
    centre = noisy.means[there].mean(axis=0)
    apart = noisy.means - centre
    errors = np.where(there, variance / np.maximum(noisy.counts, 1), 0)
    size = noisy.means.shape[1]
    found = np.square(apart[there]).sum() / (size * max(there.sum() - 1, 1)) - errors[there].mean()
    spread = max(float(found), 0.0)
    kept = np.where(there, spread / np.maximum(spread + errors, 1e-30), 0)
    doubt = float((noisy.counts * kept * errors).sum() / noisy.counts.sum())
    return np.asarray(centre + kept[:, None] * apart), doubt


def softmax(scores: Floats) -> Floats:
    """Probabilities of scores, row by row."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _checked(
    features: Array, labels: npt.NDArray[np.integer], sigma: float, classes: int
) -> tuple[Floats, npt.NDArray[np.int64]]:
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ShapeError(f"features {features.shape} and labels {labels.shape} do not go together")
    if not 0 <= sigma < math.inf:
        raise ParameterError(f"noise has a standard deviation of at least 0, not {sigma}")
    truth = labels.astype(np.int64)
    if len(truth) and not 0 <= truth.min() <= truth.max() < classes:
        raise ParameterError(f"labels are numbers from 0 to {classes - 1}")
    counts = np.bincount(truth, minlength=classes)
    if (counts > 0).sum() < 2 or len(truth) < 2 * FOLDS:
        raise ParameterError(
            f"a classifier cannot be learnt from {len(truth)} rows of {(counts > 0).sum()} classes: give "
            "more"
        )
    return features.astype(np.float64), truth
