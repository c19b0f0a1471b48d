"""What can be learned from rows that went through the noisy channel, and what they give away.

Clip, noise and bounds are those of protected deliveries; here they are only used. Noise is fresh, as it is
there: a result comes again within its spread, and not to the last digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from mole.attacks.nearest_features import likeliest
from mole.protection import Certificate, FreshNoise, clip, release
from mole.protection.adapting import adapted
from mole.protection.calibration import calibration
from mole.protection.head import Head, fit_noisy_head, softmax
from mole.protection.known_channel import KnownChannel
from mole.scheme.shapes import Array
from mole.scores import Score
from mole.sources.source import Labels

CANDIDATES = 1000
STEPS = 60  # of L-BFGS, at most
DECAYS = (1e-6, 1e-5, 1e-4, 1e-3)  # of weights, from which held-out rows choose
HELD_OUT = 5  # every fifth row

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Features:
    """Clipped features of images, (n, d), without noise, and their labels."""

    rows: Floats
    labels: Labels

    @classmethod
    def of(cls, features: Array, labels: Labels) -> "Features":
        """What a front gave, at a length of at most 1."""
        return cls(clip(features, 1.0)[0], labels)

    def noisy(self, certificate: Certificate | None) -> "Features":
        """The same with fresh noise; as they are without a certificate."""
        if certificate is None:
            return self
        return Features(release(self.rows, certificate, FreshNoise()), self.labels)

    def first(self, count: int) -> "Features":
        """The first of them."""
        return Features(self.rows[:count], self.labels[:count])


@dataclass(frozen=True, eq=False)
class Parts:
    """What is learned from, scored on, and calibrated on where there is something to."""

    train: Features
    test: Features
    validation: Features | None
    classes: int


def score(parts: Parts, certificate: Certificate | None) -> dict[str, float]:
    """Learn from rows of one draw of noise, and be scored on clean features."""
    noisy = parts.train.noisy(certificate)
    channel = None if certificate is None else KnownChannel(certificate)
    learn = noisy if channel is None else replace(noisy, rows=channel.unbiased(noisy.rows))
    head = best_head(learn, 0.0 if channel is None else channel.spread, parts.classes)
    answers = scored(head, parts.test)
    found = {"accuracy": answers.accuracy, **({} if answers.auc is None else {"auc": answers.auc})}
    found["nearest_mean_accuracy"] = scored(nearest_mean(learn, parts.classes), parts.test).accuracy
    if parts.validation is not None and parts.classes == 2:
        found["calibrated_accuracy"] = calibrated_accuracy(head, parts.validation, parts.test)
        found["adapted_accuracy"] = adapted_accuracy(head, parts.validation, parts.test)
    if certificate is not None:
        found["identified"] = identified(parts.train, noisy, certificate)
    return found


def best_head(rows: Features, sigma: float, classes: int) -> Head:
    """The head for noisy features; without noise, the better of that one and logistic regression."""
    head = fit_noisy_head(rows.rows, rows.labels, sigma, classes)
    if sigma:
        return head
    aside = np.arange(len(rows.rows)) % HELD_OUT == 0
    learn, check = (Features(rows.rows[at], rows.labels[at]) for at in (~aside, aside))
    decay = max(DECAYS, key=lambda one: scored(logistic(learn, one, classes), check).accuracy)
    chosen = scored(logistic(learn, decay, classes), check).accuracy
    if chosen < scored(fit_noisy_head(learn.rows, learn.labels, 0.0, classes), check).accuracy:
        return head
    return logistic(rows, decay, classes)


def nearest_mean(rows: Features, classes: int) -> Head:
    """The class whose mean is nearest."""
    means = np.stack([rows.rows[rows.labels == one].mean(axis=0) for one in range(classes)])
    return Head(means, -np.square(means).sum(axis=1) / 2)


def logistic(rows: Features, decay: float, classes: int) -> Head:
    """Logistic regression."""
    layer = nn.Linear(rows.rows.shape[1], classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    inputs, labels = torch.from_numpy(rows.rows.astype(np.float32)), torch.from_numpy(rows.labels)
    optimizer = torch.optim.LBFGS(
        layer.parameters(), max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(layer(inputs), labels) + decay * layer.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    weight, intercept = (tensor.detach().numpy().astype(np.float64) for tensor in layer.parameters())
    return Head(weight, intercept)


def scored(head: Head, clean: Features) -> Score:
    """How good a head's answers are."""
    chances = softmax(head.scores(clean.rows))
    right = float((chances.argmax(axis=1) == clean.labels).mean())
    return Score(float("nan"), right, clean.labels, chances)


def calibrated_accuracy(head: Head, own: Features, clean: Features) -> float:
    """How often two classes are told apart, after calibration on some images, `own`."""
    found = calibration(head.scores(own.rows), own.labels)
    chances = found.probabilities(head.scores(clean.rows))[:, 1]
    return float(((chances >= found.threshold) == clean.labels).mean())


def adapted_accuracy(head: Head, own: Features, clean: Features) -> float:
    """The same after the head was adapted to those images, where they show that it helps."""
    better = adapted(head, own.rows, own.labels)
    return calibrated_accuracy(head, own, clean) if better is None else scored(better, clean).accuracy


def identified(
    clean: Features, noisy: Features, certificate: Certificate | None, candidates: int = CANDIDATES
) -> float:
    """How often the clean features that a row is likeliest of are its own, among those of so many images.

    No attacker can do better where candidates are equally likely. Without a certificate the nearest are
    taken.
    """
    channel = KnownChannel(certificate or Certificate(clean.rows.shape[1], 1.0, 1.0))
    count = attacked(len(clean.rows), candidates)
    right = 0
    for start in range(0, count, candidates):
        own, seen = (part.rows[start : start + candidates] for part in (clean, noisy))
        right += int((likeliest(seen, own, channel) == np.arange(len(own))).sum())
    return right / count


def attacked(rows: int, candidates: int = CANDIDATES) -> int:
    """How many of so many rows are attacked: those that fill groups of candidates.

    >>> attacked(4708), attacked(300)
    (4000, 300)
    """
    return rows // candidates * candidates or rows


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """Mean, least and largest."""
    numbers = {"mean": float(np.mean(values)), "low": min(values), "high": max(values)}
    return {name: round(value, 4) for name, value in numbers.items()}
