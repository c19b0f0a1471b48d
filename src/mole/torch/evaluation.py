"""Run a trained model: how good it is where the labels are known, and what it answers to requests."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

from mole.errors import ParameterError
from mole.exchange.shards import ROW_ID
from mole.torch.batches import in_order, samples_and_labels, samples_of
from mole.torch.dataset import MorphedDataset
from mole.torch.module import augmented_part, check_key
from mole.torch.running import in_mode, logits_of, move

PREDICTION, PROBABILITY = "prediction", "probability"


class Evaluation(NamedTuple):
    """The mean loss, and the share of correct answers."""

    loss: float
    accuracy: float


class RunningScore:
    """Adds up the scores of batches."""

    def __init__(self) -> None:
        self._loss, self._correct, self._rows = 0.0, 0, 0

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        """One more batch."""
        self._loss += float(loss) * len(labels)
        self._correct += int((logits.argmax(1) == labels).sum())
        self._rows += len(labels)

    def result(self) -> Evaluation:
        """The scores of all batches so far."""
        return Evaluation(self._loss / self._rows, self._correct / self._rows)


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean loss of a batch; an error if the labels do not fit the model, or the loss is not finite."""
    smallest, largest = int(labels.min()), int(labels.max())
    if smallest < 0 or largest >= logits.shape[1]:
        raise ParameterError(
            f"the model knows classes 0 to {logits.shape[1] - 1} and the data has labels from {smallest} "
            f"to {largest}: build the model for that many classes"
        )
    loss = cross_entropy(logits, labels)
    if not torch.isfinite(loss):
        raise ParameterError("the loss is no longer a finite number: try a smaller learning rate")
    return loss


def evaluate(
    model: nn.Module,
    dataset: Dataset[Any],
    *,
    batch_size: int = 256,
    device: str | None = None,
    workers: int = 0,
) -> Evaluation:
    """Loss and accuracy of a model on a data set; the model does not learn from it.

        evaluate(model, MorphedDataset("delivery", "test")).accuracy

    Raises:
        ParameterError: if data and model do not belong together, or the data has no labels.
    """
    check_key(model, dataset)
    place, running = move(model, device), RunningScore()
    with in_mode(model, training=False), torch.inference_mode():
        for batch in in_order(dataset, batch_size=batch_size, workers=workers):
            samples, labels = (part.to(place) for part in samples_and_labels(batch))
            logits = logits_of(model, samples)
            running.add(loss_of(logits, labels), logits, labels)
    return running.result()


def predict(
    model: nn.Module,
    dataset: MorphedDataset,
    *,
    batch_size: int = 256,
    device: str | None = None,
    workers: int = 0,
) -> pa.Table:
    """An answer for every row: `row_id`, `prediction` (the class), `probability` (one per class).

        pyarrow.parquet.write_table(predict(model, dataset), "predictions.parquet")

    Raises:
        ParameterError: if the model has no augmented layer, or one for another key than the data's.
    """
    if augmented_part(model) is None:
        raise ParameterError("the model has no augmented layer: attach the one that came with the data")
    check_key(model, dataset)
    place, parts = move(model, device), []
    with in_mode(model, training=False), torch.inference_mode():
        for batch in in_order(dataset, batch_size=batch_size, workers=workers):
            logits = logits_of(model, samples_of(batch).to(place))
            parts.append(logits.float().softmax(1).cpu().numpy())
    probabilities = np.concatenate(parts)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(probabilities.reshape(-1)), probabilities.shape[1])
    predictions = pa.array(probabilities.argmax(axis=1).astype(np.int64))
    return pa.table({ROW_ID: dataset.row_ids, PREDICTION: predictions, PROBABILITY: lists})
