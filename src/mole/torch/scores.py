"""How well a model does: losses and right answers, added up over batches."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mole.errors import ParameterError


class Score(NamedTuple):
    """Mean loss, and share of right answers."""

    loss: float
    accuracy: float


class Epoch(NamedTuple):
    """How one pass over the data went: scores while training, and afterwards on other data."""

    number: int
    loss: float
    accuracy: float
    validation: Score | None


class Sums:
    """Adds up the scores of batches."""

    def __init__(self) -> None:
        self.loss, self.right, self.rows = 0.0, 0, 0

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        """A batch more."""
        self.loss += float(loss) * len(labels)
        self.right += int((logits.argmax(1) == labels).sum())
        self.rows += len(labels)

    def score(self) -> Score:
        """Of all batches so far."""
        return Score(self.loss / self.rows, self.right / self.rows)


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean loss of a batch, or an error where it can not be."""
    smallest, largest = int(labels.min()), int(labels.max())
    if smallest < 0 or largest >= logits.shape[1]:
        raise ParameterError(
            f"the model knows classes 0 to {logits.shape[1] - 1} and the data has labels from {smallest} "
            f"to {largest}: build the model for that many classes"
        )
    loss = cross_entropy(logits, labels)
    if not torch.isfinite(loss):
        raise ParameterError("the loss is no number any more: try a smaller learning rate")
    return loss
