"""Run a trained model: how good it is where the labels are known, and what it answers to requests."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

from mole.errors import ParameterError
from mole.exchange.shards import LABEL, ROW_ID
from mole.progress import Progress, no_progress
from mole.scores import Evaluation, Score
from mole.torch.batches import in_order, samples_and_labels, samples_of
from mole.torch.dataset import MorphedDataset
from mole.torch.key_check import check_key
from mole.torch.module import augmented_part
from mole.torch.running import in_mode, logits_of, move

PREDICTION, PROBABILITY, CLASS_NAME = "prediction", "probability", "class_name"
BATCH_SIZE = 256  # rows at a time
CLASS_NAMES = b"class_names"  # of the whole table, in its metadata


class RunningScore:
    """Adds up the scores of batches."""

    def __init__(self) -> None:
        self._loss, self._correct, self._rows = 0.0, 0, 0

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        """One more batch."""
        self._loss += float(loss) * len(labels)
        self._correct += int((logits.argmax(1) == labels).sum())
        self._rows += len(labels)

    @property
    def rows(self) -> int:
        """How many rows were scored so far."""
        return self._rows

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
    batch_size: int = BATCH_SIZE,
    device: str | None = None,
    workers: int = 0,
    progress: Progress = no_progress,
) -> Score:
    """Loss, accuracy, area under the curve and confusion matrix of a model, which does not learn from it.

        loss, accuracy = evaluate(model, MorphedDataset("delivery", "test"))
        evaluate(model, MorphedDataset("delivery", "test")).confusion

    Raises:
        ParameterError: if data and model do not belong together, or the data has no labels.
    """
    check_key(model, dataset)
    truth: list[npt.NDArray[np.int64]] = []
    chances: list[npt.NDArray[np.float64]] = []

    def keep(logits: Tensor, labels: Tensor) -> None:
        truth.append(labels.cpu().numpy())
        chances.append(logits.cpu().double().softmax(1).numpy())

    scored = loss_and_accuracy(
        model, dataset, batch_size=batch_size, device=device, workers=workers, progress=progress, seen=keep
    )
    return Score(*scored, np.concatenate(truth), np.concatenate(chances))


def loss_and_accuracy(
    model: nn.Module,
    dataset: Dataset[Any],
    *,
    batch_size: int = BATCH_SIZE,
    device: str | None = None,
    workers: int = 0,
    progress: Progress = no_progress,
    seen: Callable[[Tensor, Tensor], None] = lambda logits, labels: None,
) -> Evaluation:
    """The same without the answers, which may be large: what a training wants after each epoch."""
    check_key(model, dataset)
    place, running = move(model, device), RunningScore()
    with in_mode(model, training=False), torch.inference_mode():
        for batch in in_order(dataset, batch_size=batch_size, workers=workers):
            samples, labels = (part.to(place) for part in samples_and_labels(batch))
            logits = logits_of(model, samples)
            running.add(loss_of(logits, labels), logits, labels)
            seen(logits, labels)
            progress(running.rows, len(dataset))  # type: ignore[arg-type]
    return running.result()


def predict(
    model: nn.Module,
    dataset: MorphedDataset,
    *,
    batch_size: int = BATCH_SIZE,
    device: str | None = None,
    workers: int = 0,
    class_names: Sequence[str] | None = None,
    progress: Progress = no_progress,
) -> pa.Table:
    """An answer for every row: `row_id`, `prediction` (the class), `probability` (one per class).

        pyarrow.parquet.write_table(predict(model, dataset), "predictions.parquet")

    Where classes have names, `class_name` is that of the prediction, and the table's metadata has all of
    them as `class_names`; where the data has labels, `label` is the true class.

    Args:
        model: a classifier with the augmented layer that belongs to the data.
        dataset: the rows to answer.
        batch_size: rows at a time.
        device: where to run, such as 'cuda'; None for where the model is.
        workers: processes that read ahead.
        class_names: names of the network's classes; None for those that the data gives.
        progress: called with the rows done and the rows to do.

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
            progress(min(len(parts) * batch_size, len(dataset)), len(dataset))
    return _table(np.concatenate(parts), dataset, dataset.classes if class_names is None else class_names)


def _table(
    probabilities: npt.NDArray[np.float32], dataset: MorphedDataset, names: Sequence[str] | None
) -> pa.Table:
    """Answers as a table, with names and labels where there are any."""
    answers = probabilities.argmax(axis=1).astype(np.int64)
    columns: dict[str, Any] = {ROW_ID: dataset.row_ids, PREDICTION: answers}
    if names is not None:  # a network may have outputs that no class belongs to
        known = [names[one] if one < len(names) else None for one in answers.tolist()]
        columns[CLASS_NAME] = pa.array(known, pa.string())
    columns[PROBABILITY] = pa.FixedSizeListArray.from_arrays(
        pa.array(probabilities.reshape(-1)), probabilities.shape[1]
    )
    if dataset.labels is not None:
        columns[LABEL] = dataset.labels
    table = pa.table(columns)
    return table if names is None else table.replace_schema_metadata({CLASS_NAMES: json.dumps([*names])})
