"""Run any model: where it is, in which mode, and what it answers."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mole.errors import ParameterError, ShapeError


def uncompiled(model: nn.Module) -> nn.Module:
    """The model itself, where `torch.compile` has wrapped it: its layers have their own names there.

    >>> model = nn.Sequential(nn.Linear(2, 1))
    >>> uncompiled(torch.compile(model)) is model, uncompiled(model) is model
    (True, True)
    """
    inner: nn.Module = getattr(model, "_orig_mod", model)
    return inner


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, where `torch.compile` or a wrapper for several processors holds it.

    To look at it is enough to run what is inside: the wrapper would wait for other processes.

    >>> model = nn.Sequential(nn.Linear(2, 1))
    >>> unwrapped(torch.compile(nn.DataParallel(model))) is model
    True
    """
    inner = uncompiled(model)
    while isinstance(inner, nn.DataParallel | nn.parallel.DistributedDataParallel):
        inner = uncompiled(inner.module)
    return inner


@contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Training or evaluation mode for a while; afterwards each module gets its own mode back."""
    before = {module: module.training for module in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for module, mode in before.items():
            module.training = mode


def move(model: nn.Module, device: str | None) -> torch.device:
    """Move a model to the device of that name, or leave it where it is; returns the device."""
    place = _device_of(model) if device is None else _device(device)
    model.to(place)
    return place


def logits_of(model: nn.Module, samples: Tensor) -> Tensor:
    """The model's answer, (batch, classes); models of Hugging Face wrap it, and it is unwrapped here."""
    output = model(samples)
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        raise ShapeError("the model does not give one row of class scores per sample: give a classifier")
    return logits


def _device_of(model: nn.Module) -> torch.device:
    tensors = [*model.parameters(), *model.buffers()]
    return tensors[0].device if tensors else torch.device("cpu")


def _device(name: str) -> torch.device:
    try:
        torch.empty(0, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ParameterError(
            f"device '{name}' cannot be used here: use cpu, or cuda if there is one"
        ) from None
