"""The course of a training, from its first step to its last, and over an interruption."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from mole.errors import FileError, ParameterError
from mole.progress import Progress
from mole.torch.batches import augmented_part, logits_of, samples_and_labels
from mole.torch.loading import fill
from mole.torch.scores import Epoch, Score, Sums, loss_of
from mole.torch.unfinished import Unfinished


class Course:
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

    def go_on(self, unfinished: Unfinished, loader: DataLoader[Any]) -> list[Epoch]:
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
        sums = Sums()
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
