"""Train a classifier on a data set, and score it: a baseline, and the loop of `mole train`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

from mole.errors import ParameterError
from mole.progress import Progress, no_progress
from mole.torch.batches import check_key, device_of, in_order, logits_of, samples_and_labels, shuffled
from mole.torch.course import Course
from mole.torch.scores import Epoch, Score, Sums, loss_of
from mole.torch.unfinished import Unfinished


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
    unfinished: Unfinished | None = None,
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
        course = Course(model, place, learning_rate, steps=epochs * len(loader), progress=progress)
        history = [] if unfinished is None else course.go_on(unfinished, loader)
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
    sums = Sums()
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
