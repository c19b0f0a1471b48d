"""Run a trained model on morphed requests."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mole.errors import ParameterError
from mole.exchange.shards import ROW_ID
from mole.torch.batches import augmented_part, check_key, device_of, in_order, logits_of
from mole.torch.dataset import MorphedDataset

PREDICTION, PROBABILITY = "prediction", "probability"


def predict(
    model: nn.Module,
    dataset: MorphedDataset,
    *,
    batch_size: int = 256,
    device: str | None = None,
    workers: int = 0,
) -> pa.Table:
    """Answers for every row: `row_id`, `prediction` (the class), `probability` (one a class).

        pyarrow.parquet.write_table(predict(model, dataset), "predictions.parquet")

    Raises:
        ParameterError: if the model has no augmented layer, or one for another key than the data's.
    """
    if augmented_part(model) is None:
        raise ParameterError("the model has no augmented layer: attach the one that came with the data")
    check_key(model, dataset)
    place = device_of(model, device)
    model.to(place)
    was_training = model.training
    model.eval()
    parts = []
    try:
        with torch.inference_mode():
            for batch in in_order(dataset, batch_size=batch_size, workers=workers):
                samples = batch[0] if isinstance(batch, list | tuple) else batch
                logits = logits_of(model, samples.to(place))
                parts.append(logits.float().softmax(1).cpu().numpy())
    finally:
        model.train(was_training)
    probabilities = np.concatenate(parts)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(probabilities.reshape(-1)), probabilities.shape[1])
    predictions = pa.array(probabilities.argmax(axis=1).astype(np.int64))
    return pa.table({ROW_ID: dataset.row_ids, PREDICTION: predictions, PROBABILITY: lists})


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


class RunningScore:
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
    """The mean loss of a batch, or an error where it cannot be."""
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
