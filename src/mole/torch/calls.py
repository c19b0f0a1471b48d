"""Compare a layer's calls: an augmented layer can stand in only for one that always does the same."""

from typing import Any

from torch import Tensor, nn

from mole.scheme.first_layer import Padding
from mole.torch.trace import Call

# Relative difference between features that should be the same, by bytes per number.
TOLERANCES = {8: 1e-4, 4: 1e-4, 2: 2e-2}


def close(ours: Tensor, seen: Tensor, *, like: Tensor | None = None) -> bool:
    """Whether every sample's features agree, as well as the coarsest of the tensors allows.

    >>> import torch
    >>> close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.00001]))
    True
    >>> close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
    False
    """
    if ours.shape != seen.shape:
        return False
    coarsest = min(tensor.element_size() for tensor in (ours, seen, like) if tensor is not None)
    one, other = (
        tensor.detach().double().cpu().flatten(1 if tensor.ndim > 1 else 0) for tensor in (ours, seen)
    )
    allowed = TOLERANCES.get(coarsest, TOLERANCES[2]) * other.norm(dim=-1) + 1e-6
    return bool(((one - other).norm(dim=-1) <= allowed).all())


def call_reasons(
    name: str,
    layer: nn.Module,
    first: Call,
    call: Call,
    *,
    training: bool,
    settled: Call | None = None,
) -> list[str]:
    """Why one layer could not stand in for a call that it can stand in for `first` with.

    Args:
        name: the layer's name in the model.
        layer: the layer.
        first: its first call, in evaluation mode.
        call: another call.
        training: whether the model was training then.
        settled: its first call while training, if there was one.
    """
    if call.padding != first.padding:
        one, other = _zeros(first.padding), _zeros(call.padding)
        return [f"{name} takes the input with {one} in one call and with {other} in another"]
    if close(call.output, first.output):
        return []
    if not training:
        return [f"{name} gives different features of the same input in different calls"]
    if settled is not None and not close(call.output, settled.output):
        return [f"the features that {name} gives while training are random"]
    if _has_spectral_norm(layer):  # improves its estimate of the norm while training
        return []
    return [f"{name} gives other features while training than in evaluation mode"]


def _zeros(padding: Padding) -> str:
    sides = " and ".join(f"{before}+{after}" for before, after in padding)
    return f"{sides} zeros around it" if padding else "no zeros around it"


def _has_spectral_norm(layer: nn.Module) -> bool:
    """Whether PyTorch's spectral norm, in its old form (a hook) or its new one, works out the weight."""
    hooks: list[Any] = list(layer._forward_pre_hooks.values())
    return any("SpectralNorm" in type(part).__name__ for part in (*hooks, *layer.modules()))
