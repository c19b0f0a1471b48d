"""The course of a training, from its first step to its last, and over an interruption."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from mole.errors import FileError, ParameterError
from mole.progress import Progress, no_progress
from mole.torch.batches import (
    augmented_part,
    check_key,
    device_of,
    in_order,
    logits_of,
    samples_and_labels,
    shuffled,
)
from mole.torch.evaluation import Epoch, RunningScore, Score, loss_of
from mole.torch.models import fill
from mole.torch.resume import ResumeFile


class Trainer:
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

    def state(self, loader: DataLoader[Any], history: Sequence[Epoch]) -> dict[str, Any]:
        """All that the epochs to come depend on, but for the augmented layer."""
        frozen = _names_of_augmented_part(self._model)
        weights = {name: t for name, t in self._model.state_dict().items() if name not in frozen}
        return {
            "weights": weights,
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "random": [generator.get_state() for generator in self._generators(loader)],
            "steps": self._done,
            "epochs": [(*epoch[:3], epoch.validation and tuple(epoch.validation)) for epoch in history],
        }

    def resume(self, unfinished: ResumeFile, loader: DataLoader[Any]) -> list[Epoch]:
        """Take up the state after the last finished epoch, if there is one; the epochs so far."""
        state = unfinished.read()
        if state is None:
            return []
        own = self._model.state_dict()
        frozen = {name: own[name] for name in _names_of_augmented_part(self._model)}
        try:
            fill(self._model, {**state["weights"], **frozen}, str(unfinished.path))
            self._optimizer.load_state_dict(state["optimizer"])
            self._schedule.load_state_dict(state["schedule"])
            for generator, kept in zip(self._generators(loader), state["random"], strict=True):
                generator.set_state(kept)
            self._done = int(state["steps"])
            return [_epoch(*scores) for scores in state["epochs"]]
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise FileError(f"{unfinished.path} does not fit this network: delete it") from None

    def _generators(self, loader: DataLoader[Any]) -> list[torch.Generator]:
        """Whatever draws random numbers: dropout, and the order of rows."""
        drawing = [torch.default_generator, loader.generator, getattr(loader.sampler, "generator", None)]
        if self._device.type == "cuda":
            drawing.append(torch.cuda.default_generators[self._device.index or 0])
        return [generator for generator in drawing if generator is not None]

    def epoch(self, loader: DataLoader[Any]) -> Score:
        """One pass over the data."""
        sums = RunningScore()
        self._model.train()
        for batch in loader:
            samples, labels = (part.to(self._device) for part in samples_and_labels(batch))
            self._optimizer.zero_grad()
            logits = logits_of(self._model, samples)
            loss = loss_of(logits, labels)
            loss.backward()
            self._optimizer.step()
            self._schedule.step()
            sums.add(loss.detach(), logits, labels)
            self._done += 1
            self._progress(self._done, self._steps)
        return sums.score()


def _epoch(number: int, loss: float, accuracy: float, validation: tuple[float, float] | None) -> Epoch:
    return Epoch(number, loss, accuracy, None if validation is None else Score(*validation))


def _names_of_augmented_part(model: nn.Module) -> list[str]:
    part = augmented_part(model)
    if part is None:
        return []
    (name,) = [name for name, module in model.named_modules() if module is part]
    return [f"{name}.{own}" for own in part.state_dict()]


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
    unfinished: ResumeFile | None = None,
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
        unfinished: keeps each finished epoch; where it has some, the training goes on behind them, and on a
            delivery ends as if it had never stopped.

    Raises:
        ParameterError: if data and model do not belong together, or the training fails.
    """
    _check_choices(epochs, batch_size, learning_rate)
    check_key(model, dataset)
    place = device_of(model, device)
    model.to(place)
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        torch.manual_seed(seed)
        loader = shuffled(dataset, batch_size=batch_size, seed=seed, workers=workers)
        course = Trainer(model, place, learning_rate, steps=epochs * len(loader), progress=progress)
        history = [] if unfinished is None else course.resume(unfinished, loader)
        for number in range(len(history) + 1, epochs + 1):
            score = course.epoch(loader)
            checked = None if validation is None else evaluate(model, validation, workers=workers)
            history.append(Epoch(number, *score, checked))
            if unfinished is not None:
                unfinished.keep(course.state(loader, history))
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
    sums = RunningScore()
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            for batch in in_order(dataset, batch_size=batch_size, workers=workers):
                samples, labels = (part.to(place) for part in samples_and_labels(batch))
                logits = logits_of(model, samples)
                sums.add(loss_of(logits, labels), logits, labels)
    finally:
        model.train(was_training)
    return sums.score()


def _check_choices(epochs: int, batch_size: int, learning_rate: float) -> None:
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("learning_rate", learning_rate)):
        if not value > 0:
            raise ParameterError(f"{name} is {value}: give a number above 0")
