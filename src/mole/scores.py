"""How good a network's answers are: accuracy, area under the curve, and who is taken for whom."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MOST_CLASSES = 1000  # a table of more has a million cells, and nobody reads it

Labels = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class Evaluation(NamedTuple):
    """The mean loss, and the share of correct answers."""

    loss: float
    accuracy: float


class Score(Evaluation):
    """An evaluation with what it was made from: unpacks to loss and accuracy, and gives further figures.

    >>> chances = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    >>> score = Score(0.5, 0.75, np.array([0, 0, 1, 1]), chances)
    >>> score.rows, score.accuracy, score.auc, score.confusion.tolist()
    (4, 0.75, 0.75, [[2, 0], [1, 1]])

    Attributes:
        labels: the true class of every row.
        probabilities: what the network gave, (rows, classes).
    """

    labels: Labels
    probabilities: Numbers

    def __new__(
        cls,
        loss: float,
        accuracy: float,
        labels: Labels | None = None,
        probabilities: Numbers | None = None,
    ) -> "Score":
        """Make a score; without labels it has no rows."""
        made = super().__new__(cls, loss, accuracy)
        made.labels = np.empty(0, np.int64) if labels is None else labels
        made.probabilities = np.empty((0, 2)) if probabilities is None else probabilities
        return made

    @property
    def rows(self) -> int:
        """How many samples were scored."""
        return len(self.labels)

    @property
    def predictions(self) -> Labels:
        """The most probable class of every row."""
        answers: Labels = self.probabilities.argmax(axis=1).astype(np.int64)
        return answers

    @cached_property
    def confusion(self) -> npt.NDArray[np.int64] | None:
        """How many rows of each class (first axis) were taken for each class (second axis).

        None for more than a thousand classes.
        """
        classes = self.probabilities.shape[1]
        if classes > MOST_CLASSES:
            return None
        cells = np.bincount(self.labels * classes + self.predictions, minlength=classes * classes)
        return cells.reshape(classes, classes)

    @cached_property
    def auc(self) -> float | None:
        """The area under the ROC curve: of two classes that of class 1, of more the mean of all.

        Each class is told from all others, and those that occur count alike. None where no class can be
        told from others, as all rows are of one class, and for more than a thousand classes.
        """
        classes = self.probabilities.shape[1]
        if classes > MOST_CLASSES:
            return None
        asked = [1] if classes == 2 else range(classes)
        areas = [area_under_curve(self.probabilities[:, one], self.labels == one) for one in asked]
        found = [area for area in areas if area is not None]
        return float(np.mean(found)) if found else None


def area_under_curve(scores: Numbers, positive: npt.NDArray[np.bool_]) -> float | None:
    """The chance that a positive row has a higher score than a negative one; a draw counts half.

    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    0.75

    None where there are no positive or no negative rows.
    """
    ones = int(positive.sum())
    others = len(positive) - ones
    if not ones or not others:
        return None
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # rows of one score share the mean of their ranks
    return float((ranks[places][positive].sum() - ones * (ones + 1) / 2) / (ones * others))
