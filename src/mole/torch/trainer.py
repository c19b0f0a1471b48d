"""Train a model: epoch after epoch, and on from the last finished one after an interruption."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from mole.errors import FileError, ParameterError
from mole.progress import Progress, no_progress
from mole.scores import Evaluation
from mole.torch.batches import samples_and_labels, shuffled
from mole.torch.evaluation import BATCH_SIZE, RunningScore, loss_and_accuracy, loss_of
from mole.torch.feature_cache import CachedFeatures, FromFeatures, cached_module, features_size
from mole.torch.key_check import check_key
from mole.torch.learning_rules import LearningRule, StepDecay
from mole.torch.mixing import mixup as mixed_up
from mole.torch.models import fill
from mole.torch.module import augmented_part
from mole.torch.resume import ResumeFile
from mole.torch.running import logits_of, move


class Epoch(NamedTuple):
    """How one pass over the data went.

    Attributes:
        number: counted from 1.
        loss, accuracy: on the training data, while the model was learning from it.
        validation: on other data, after the epoch; None if there is no other data.
        split: the name of that other data, if it is a split of a delivery.
    """

    number: int
    loss: float
    accuracy: float
    validation: Evaluation | None
    split: str | None = None


def train(
    model: nn.Module,
    dataset: Dataset[Any],
    *,
    epochs: int,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    decay: StepDecay | None = None,
    mixup: float = 0.0,
    cache_features: bool | None = None,
    seed: int = 0,
    device: str | None = None,
    finished: int = 0,
    validation: Dataset[Any] | None = None,
    workers: int = 0,
    resume_file: ResumeFile | None = None,
    progress: Progress = no_progress,
    on_resume: Callable[[int], None] = lambda finished: None,
    on_cache: Callable[[int], None] = lambda size: None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> tuple[Epoch, ...]:
    """Train a model in place, with AdamW and a learning rate that rises and falls once.

        attach(model, mole.load("delivery/augmented-layer.safetensors"))
        train(model, MorphedDataset("delivery", "train"), epochs=10)

    On a CPU the same model, data and seed give the same result.

    Args:
        model: a classifier, with the augmented layer attached if the data is morphed.
        dataset: samples with labels, such as a `MorphedDataset`.
        epochs: passes over the data, with those that are finished.
        batch_size: rows per step.
        learning_rate: its peak.
        weight_decay: how strongly weights are drawn towards zero.
        decay: SGD with momentum instead, and a learning rate that falls in steps.
        mixup: learn from weighted means of two samples, with weights from Beta(mixup, mixup); 0 for none.
        cache_features: keep what the augmented layer gives in memory, instead of computing it in every
            epoch; the result is the same. None does so where it fits into a quarter of the free memory.
        seed: decides the order of the rows, dropout and what mixup mixes.
        device: where to train, such as 'cuda'; None for where the model is. The model stays there.
        finished: epochs that the model has behind it. The learning rate rises and falls once more over the
            others, and rows come in other orders.
        validation: other data to score the model on after each epoch.
        workers: processes that read ahead; none where features are kept.
        resume_file: keeps the state after each epoch. If it holds one already, training resumes there; on a
            delivery it ends as if it had never been interrupted.
        progress: called with the steps done and the steps to do.
        on_resume: called with the number of finished epochs, if there are any.
        on_cache: called with the bytes of features that are kept in memory, if they are.
        on_epoch: called after each epoch.

    Returns:
        Every epoch, those before an interruption included, but none of those that were finished before.

    Raises:
        ParameterError: if data and model do not belong together, features cannot be kept that should be, or
            the training fails.
        FileError: if the resume file belongs to another training, or cannot be read or written.
    """
    _check_positive(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate)
    for choice, value in (("weight_decay", weight_decay), ("mixup", mixup)):
        if not value >= 0:
            raise ParameterError(f"{choice} is {value}: give 0 or a number above")
    if not 0 <= finished < epochs:
        raise ParameterError(f"finished is {finished}: give a number from 0 to below epochs, {epochs}")
    check_key(model, dataset)
    place, name = move(model, device), getattr(validation, "split", None)
    data = _Data(model, dataset, validation, workers)
    if cache_features or epochs - finished > 1:
        data = data.cached(cache_features, place, batch_size=batch_size, told=on_cache)
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        torch.manual_seed(seed + finished)
        loader = shuffled(data.learning, batch_size=batch_size, seed=seed + finished, workers=data.workers)
        rule = LearningRule.of(
            model, learning_rate=learning_rate, weight_decay=weight_decay, decay=decay,
            batches=len(loader), epochs=epochs - finished,
        )  # fmt: skip
        trainer = Trainer(
            model, loader, place, rule, answers=data.answers, mixup=mixup, epochs=epochs - finished,
            progress=progress,
        )  # fmt: skip
        history = [] if resume_file is None else trainer.resume(resume_file)
        history = [epoch._replace(split=name) for epoch in history]
        if history or finished:
            on_resume(finished + len(history))
        for number in range(finished + len(history) + 1, epochs + 1):
            score = trainer.epoch()
            history.append(Epoch(number, *score, data.score(), name))
            if resume_file is not None:
                resume_file.keep(trainer.state(history))
            on_epoch(history[-1])
    return tuple(history)


class _Data(NamedTuple):
    """What a model learns from and is scored on, and what answers to it: samples, or kept features."""

    answers: nn.Module
    learning: Dataset[Any]
    watched: Dataset[Any] | None
    workers: int

    def cached(
        self, wanted: bool | None, device: torch.device, *, batch_size: int, told: Callable[[int], None]
    ) -> "_Data":
        """The same with features that are kept in memory, if they should be and can be."""
        both = [self.learning] if self.watched is None else [self.learning, self.watched]
        module = cached_module(self.answers, both, wanted=wanted, device=device)
        if module is None:
            return self
        told(sum(features_size(module, data) for data in both))
        sizes = (batch_size, BATCH_SIZE)
        kept = [
            CachedFeatures(data, module, batch_size=size, device=device)
            for data, size in zip(both, sizes, strict=False)
        ]
        answers = FromFeatures(self.answers, module)
        return _Data(answers, kept[0], kept[1] if len(kept) > 1 else None, 0)

    def score(self) -> Evaluation | None:
        """How good the model is on what it does not learn from."""
        if self.watched is None:
            return None
        return loss_and_accuracy(self.answers, self.watched, workers=self.workers)


class Trainer:
    """A model that learns, with its data, optimizer and learning rate, from the first step to the last."""

    def __init__(
        self,
        model: nn.Module,
        loader: DataLoader[Any],
        device: torch.device,
        rule: LearningRule,
        *,
        answers: nn.Module,
        mixup: float,
        epochs: int,
        progress: Progress,
    ) -> None:
        self._model, self._loader, self._device, self._progress = model, loader, device, progress
        self._answers, self._mixup = answers, mixup
        self._done, self._steps = 0, epochs * len(loader)
        self._optimizer, self._schedule = rule

    def epoch(self) -> Evaluation:
        """One pass over the data."""
        running = RunningScore()
        self._model.train()
        for batch in self._loader:
            samples, labels = (part.to(self._device) for part in samples_and_labels(batch))
            self._optimizer.zero_grad()
            mixed = mixed_up(samples, labels, self._mixup) if self._mixup else None
            logits = logits_of(self._answers, samples if mixed is None else mixed.samples)
            loss = loss_of(logits, labels) if mixed is None else mixed.loss(logits)
            loss.backward()
            self._optimizer.step()
            self._schedule.step()
            running.add(loss.detach(), logits, labels if mixed is None else mixed.main)
            self._done += 1
            self._progress(self._done, self._steps)
        return running.result()

    def state(self, history: Sequence[Epoch]) -> dict[str, Any]:
        """Everything that the epochs to come depend on, except for the augmented layer."""
        layer = self._augmented_layer()
        return {
            "weights": {name: t for name, t in self._model.state_dict().items() if name not in layer},
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "random": [generator.get_state() for generator in self._generators()],
            "steps": self._done,
            "epochs": [(*epoch[:3], epoch.validation and tuple(epoch.validation)) for epoch in history],
        }

    def resume(self, file: ResumeFile) -> list[Epoch]:
        """Take up the state that a file holds; returns the finished epochs, none if there is no file."""
        state = file.read()
        if state is None:
            return []
        try:
            fill(self._model, {**state["weights"], **self._augmented_layer()}, str(file.path))
            self._optimizer.load_state_dict(state["optimizer"])
            self._schedule.load_state_dict(state["schedule"])
            for generator, kept in zip(self._generators(), state["random"], strict=True):
                generator.set_state(kept)
            self._done = int(state["steps"])
            return [_epoch(*scores) for scores in state["epochs"]]
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise FileError(f"{file.path} does not fit this network: delete it") from None

    def _augmented_layer(self) -> dict[str, Tensor]:
        """The augmented layer's tensors by their names in the model: frozen, and so not kept."""
        found = augmented_part(self._model)
        if found is None:
            return {}
        return {f"{found.name}.{name}": tensor for name, tensor in found.module.state_dict().items()}

    def _generators(self) -> list[torch.Generator]:
        """Whatever draws random numbers: dropout, and the order of the rows."""
        order = (self._loader.generator, getattr(self._loader.sampler, "generator", None))
        drawing = [torch.default_generator, *order]
        if self._device.type == "cuda":
            drawing.append(torch.cuda.default_generators[self._device.index or 0])
        return [generator for generator in drawing if generator is not None]


def _epoch(number: int, loss: float, accuracy: float, validation: tuple[float, float] | None) -> Epoch:
    return Epoch(number, loss, accuracy, None if validation is None else Evaluation(*validation))


def _check_positive(**choices: float) -> None:
    for name, value in choices.items():
        if not value > 0:
            raise ParameterError(f"{name} is {value}: give a number above 0")
