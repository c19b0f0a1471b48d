"""Find a model's first layer: the one linear layer that takes the input, and nothing else does."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mole.errors import UnsupportedLayerError
from mole.geometry import Shape, check_shape
from mole.layer import Padding
from mole.torch.trace import Trace, trace_input

SAMPLES = 2


class FoundLayer(NamedTuple):
    """A model's first layer, with what went in and came out when the model ran.

    Attributes:
        name: where it stands in the model.
        module: the layer.
        batch: what the model was given.
        padding: zeros that the model itself put around the batch before this layer; () for none.
        features: what the layer made of it.
    """

    name: str
    module: nn.Module
    batch: Tensor
    padding: Padding
    features: Tensor


def find_first_layer(model: nn.Module, input_shape: Shape) -> FoundLayer:
    """Run the model on a random batch and return the layer that takes its input.

    Args:
        model: any module that takes a batch of samples as its first argument.
        input_shape: shape of one sample, such as (3, 32, 32).

    Raises:
        UnsupportedLayerError: with every reason why no layer could be replaced.
    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    batch = _random_batch(model, check_shape(input_shape))
    try:
        trace = trace_input(model, batch)
    except Exception as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnsupportedLayerError(
            f"{type(model).__name__} does not run on a batch of shape {tuple(batch.shape)}",
            [first_line],
        ) from error
    reasons = _reasons(trace)
    if reasons:
        raise UnsupportedLayerError(f"no first layer of {type(model).__name__} can be replaced", reasons)
    ((name, calls),) = trace.taken_by.items()
    return FoundLayer(name, model.get_submodule(name), batch, *calls[0])


def _random_batch(model: nn.Module, input_shape: Shape) -> Tensor:
    """Noise from a generator of its own, where and how the model keeps its weights."""
    noise = torch.randn(SAMPLES, *input_shape, generator=torch.Generator().manual_seed(0))
    weights = (tensor for tensor in model.parameters() if tensor.is_floating_point())
    like = next(weights, noise)
    return noise.to(device=like.device, dtype=like.dtype)


def _reasons(trace: Trace) -> list[str]:
    """Everything that stands in the way of replacing one layer."""
    reasons = [f"the input goes through {touch}" for touch in dict.fromkeys(trace.touched)]
    if not trace.taken_by:
        reasons.append("no Linear, Conv1d, Conv2d or Conv3d layer takes the input itself")
    if len(trace.taken_by) > 1:
        reasons.append(f"the input goes to several layers: {', '.join(trace.taken_by)}")
    for name in trace.taken_by:
        if not name:
            reasons.append("the model is a bare layer: wrap it in nn.Sequential")
        if name in trace.called_otherwise:
            reasons.append(f"{name} is also used on something other than the input")
    return reasons
