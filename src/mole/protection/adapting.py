"""Corrects a head on clean, labelled features of one's own, where they show that it points the wrong way.

Calibration scales what a head says. It cannot mend a direction that noise has bent, and a few hundred clean
rows with labels can: scores become those of the calibrated head plus V x + c, where V is kept small. How
small is decided by labels of rows that were held out, and so is whether there is a correction at all.

What comes out has learned from clean images, so no certificate covers it: it is for use at home alone.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mole.errors import MissingExtraError, ParameterError
from mole.protection.calibration import FOLDS, calibration, held_out
from mole.protection.head import Head, softmax
from mole.scheme.shapes import Array

try:  # an extra: calibration works without
    from scipy.optimize import minimize
except ImportError:
    minimize = None  # type: ignore[assignment]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # on |V|^2 / 2, for rows of length 1: strict ones first
OF_INTERCEPTS = 1e-2  # likewise: as a hundredth of a row would, so that an end is always found
STEPS = 200
BY_CHANCE = 2.0  # standard deviations
MOST_NUMBERS = 100_000  # classes times features: more would take hours
TINY = 1e-300


def adapted(head: Head, features: Array, labels: Labels) -> Head | None:
    """The head with a correction; None where held-out rows do not show that one helps.

        better = adapted(head, clean, labels) or calibration(head.scores(clean), labels).apply(head)

    Args:
        head: learned elsewhere, or from noisy rows.
        features: clean rows of one's own, (n, d).
        labels: the class of each, (n,).

    Raises:
        MissingExtraError: without SciPy.
        ParameterError: if fewer than two classes occur, or the head is too large.
    """
    if head.weight.size > MOST_NUMBERS:
        raise ParameterError(
            f"a head of {head.classes:,} classes and {head.weight.shape[1]:,} features is too large to "
            "be adapted: calibrate it alone"
        )
    length = float(np.linalg.norm(features, axis=1).max()) or 1.0
    rows = np.asarray(features / length, np.float64)
    same = Head(length * head.weight, head.intercept)
    parts = held_out(labels)
    if parts is None:
        return None
    told = np.zeros((1 + len(PENALTIES), len(rows)))  # how well held-out labels are told, uncorrected first
    for part in range(FOLDS):
        out = parts == part
        heads = _corrections(same, rows[~out], labels[~out], PENALTIES)
        told[:, out] = [_likelihoods(one, rows[out], labels[out]) for one in heads]
    gains = told[1:] - told[0]
    best = int(gains.sum(axis=1).argmax())
    if gains[best].sum() <= BY_CHANCE * np.sqrt(np.square(gains[best]).sum()):
        return None
    found = _corrections(same, rows, labels, PENALTIES[: best + 1])[-1]
    return Head(found.weight / length, found.intercept)


def _corrections(head: Head, rows: Floats, labels: Labels, penalties: Sequence[float]) -> list[Head]:
    """The calibrated head, and the best correction of it under each penalty, the strictest first."""
    if minimize is None:
        raise MissingExtraError("adapting a head needs SciPy", "front")
    calibrated = calibration(head.scores(rows), labels).apply(head)
    scores, truth = calibrated.scores(rows), np.eye(head.classes)[labels]
    shape = head.weight.shape
    found, at = [calibrated], np.zeros(head.weight.size + head.classes)

    def loss(numbers: Floats, penalty: float) -> tuple[float, Floats]:
        """The labels' misfit with its penalties, and how it changes with V and c."""
        weight, intercept = numbers[: -head.classes].reshape(shape), numbers[-head.classes :]
        chances = softmax(scores + rows @ weight.T + intercept)
        off = chances - truth
        misfit = -np.log(np.maximum((chances * truth).sum(axis=1), TINY)).sum()
        misfit += penalty / 2 * np.square(weight).sum() + OF_INTERCEPTS / 2 * np.square(intercept).sum()
        slope = (off.T @ rows + penalty * weight).ravel()
        return float(misfit), np.concatenate([slope, off.sum(axis=0) + OF_INTERCEPTS * intercept])

    for penalty in penalties:
        at = minimize(loss, at, (penalty,), method="L-BFGS-B", jac=True, options={"maxiter": STEPS}).x
        weight, intercept = at[: -head.classes].reshape(shape), at[-head.classes :]
        found.append(Head(calibrated.weight + weight, calibrated.intercept + intercept))
    return found


def _likelihoods(head: Head, rows: Floats, labels: Labels) -> Floats:
    """The logarithm of how likely each label was, (n,)."""
    chances = head.probabilities(rows)[np.arange(len(labels)), labels]
    return np.asarray(np.log(np.maximum(chances, TINY)), np.float64)
