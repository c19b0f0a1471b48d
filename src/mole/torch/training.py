"""Train a classifier on a data set, and score it: a baseline, and the loop of `mole train`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from mole.errors import ParameterError
from mole.progress import Progress, no_progress
from mole.torch.batches import check_key, device_of, in_order, logits_of, samples_and_labels, shuffled


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


def train(
    model: nn.Module,
    dataset: Dataset[Any],
    *,
    epochs: int,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    seed: int = 0,
    device: str | None = None,
    validation: Dataset[Any] | None = None,
    workers: int = 0,
    progress: Progress = no_progress,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> tuple[Epoch, ...]:
    """Train a model in place, with Adam and a learning rate that rises and falls once.

    On a CPU the same model, data and seed give the same result.

    Args:
        model: a classifier, with the augmented layer attached if the data is morphed.
        dataset: samples with labels, such as a `MorphedDataset`.
        epochs: passes over the data.
        batch_size: rows for a step.
        learning_rate: its peak.
        seed: decides the order of the rows, and dropout.
        device: where to train, such as 'cuda'; None for where the model is. The model stays there.
        validation: other data to score the model on after each epoch.
        workers: processes that read ahead.
        progress: called with the steps done and the steps to do.
        on_epoch: called after each epoch.

    Raises:
        ParameterError: if data and model do not belong together, or the training fails.
    """
    _check_choices(epochs, batch_size, learning_rate)
    check_key(model, dataset)
    place = device_of(model, device)
    model.to(place)
    history: list[Epoch] = []
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        torch.manual_seed(seed)
        loader = shuffled(dataset, batch_size=batch_size, seed=seed, workers=workers)
        course = _Course(model, place, learning_rate, steps=epochs * len(loader), progress=progress)
        for number in range(1, epochs + 1):
            score = course.epoch(loader)
            checked = None if validation is None else evaluate(model, validation, workers=workers)
            history.append(Epoch(number, *score, checked))
            on_epoch(history[-1])
    return tuple(history)


def evaluate(
    model: nn.Module,
    dataset: Dataset[Any],
    *,
    batch_size: int = 256,
    device: str | None = None,
    workers: int = 0,
) -> Score:
    """Loss and accuracy of a model on a data set; the model is left as it was."""
    check_key(model, dataset)
    place = device_of(model, device)
    model.to(place)
    sums = _Sums()
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            for batch in in_order(dataset, batch_size=batch_size, workers=workers):
                samples, labels = (part.to(place) for part in samples_and_labels(batch))
                logits = logits_of(model, samples)
                sums.add(_loss(logits, labels), logits, labels)
    finally:
        model.train(was_training)
    return sums.score()


class _Sums:
    """Adds up the scores of batches."""

    def __init__(self) -> None:
        self.loss, self.right, self.rows = 0.0, 0, 0

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        self.loss += float(loss) * len(labels)
        self.right += int((logits.argmax(1) == labels).sum())
        self.rows += len(labels)

    def score(self) -> Score:
        return Score(self.loss / self.rows, self.right / self.rows)


class _Course:
    """The optimizer and its learning rate, from the first step to the last."""

    def __init__(
        self,
        model: nn.Module,
        device: torch.device,
        learning_rate: float,
        *,
        steps: int,
        progress: Progress,
    ) -> None:
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not parameters:
            raise ParameterError("the model has nothing to train: all its parameters are frozen")
        self._model, self._device = model, device
        self._done, self._steps, self._progress = 0, steps, progress
        self._optimizer = torch.optim.Adam(parameters, lr=learning_rate)
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(
            self._optimizer, max_lr=learning_rate, total_steps=max(2, steps)
        )

    def epoch(self, loader: DataLoader[Any]) -> Score:
        """One pass over the data."""
        sums = _Sums()
        self._model.train()
        for batch in loader:
            samples, labels = (part.to(self._device) for part in samples_and_labels(batch))
            self._optimizer.zero_grad()
            logits = logits_of(self._model, samples)
            loss = _loss(logits, labels)
            loss.backward()
            self._optimizer.step()
            self._schedule.step()
            sums.add(loss.detach(), logits, labels)
            self._done += 1
            self._progress(self._done, self._steps)
        return sums.score()


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
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


def _check_choices(epochs: int, batch_size: int, learning_rate: float) -> None:
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("learning_rate", learning_rate)):
        if not value > 0:
            raise ParameterError(f"{name} is {value}: give a number above 0")
