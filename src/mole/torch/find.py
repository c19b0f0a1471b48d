"""Find a model's first layer: the one linear layer that takes the input, where nothing else does."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mole.errors import UnsupportedLayerError
from mole.scheme.first_layer import Padding
from mole.scheme.shapes import Shape, check_shape
from mole.torch.running import uncompiled
from mole.torch.trace import Trace, trace_input


class FoundLayer(NamedTuple):
    """A model's first layer, with what went in and came out when the model ran.

    Attributes:
        name: its name in the model.
        module: the layer.
        batch: what the model was given.
        padding: zeros that the model itself put around the batch before this layer; () for none.
        features: what the layer gave.
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
    model = uncompiled(model)
    with torch.inference_mode(False):  # tensors made in inference mode are dispatched differently
        batch = _test_batch(model, check_shape(input_shape))
    try:
        trace = trace_input(model, batch, training=False)
    except Exception as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnsupportedLayerError(
            f"{type(model).__name__} does not run on a batch of shape {tuple(batch.shape)}",
            [first_line],
        ) from error
    reasons = list(dict.fromkeys(_reasons(trace) + _reasons_in_training(model, batch)))
    if reasons:
        raise UnsupportedLayerError(f"no first layer of {type(model).__name__} can be replaced", reasons)
    ((name, calls),) = trace.taken_by.items()
    return FoundLayer(name, model.get_submodule(name), batch, *calls[0])


def _test_batch(model: nn.Module, input_shape: Shape) -> Tensor:
    """Two samples of noise and a flat one, on the device and in the precision of the model's weights."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    batch = torch.randn(3, *input_shape, generator=generator, device="cpu")
    batch[2] = 1
    weights = (tensor for tensor in model.parameters() if tensor.is_floating_point())
    like = next(weights, batch)
    return batch.to(device=like.device, dtype=like.dtype)


def _reasons_in_training(model: nn.Module, batch: Tensor) -> list[str]:
    """What happens to the input only while training, such as a random flip."""
    try:
        return _reasons(trace_input(model, batch, training=True))
    except Exception:  # a model may need more than a batch to train
        return []


def _reasons(trace: Trace) -> list[str]:
    """Everything that stands in the way of replacing one layer."""
    reasons = [f"the input goes through {touch}" for touch in dict.fromkeys(trace.touched)]
    if not trace.taken_by:
        reasons.append("no Linear, Conv1d, Conv2d or Conv3d layer takes the input itself")
    if len(trace.taken_by) > 1:
        reasons.append(f"the input goes to several layers: {', '.join(trace.taken_by)}")
    for name, calls in trace.taken_by.items():
        if not name:
            reasons.append("the model is a bare layer: wrap it in nn.Sequential")
        if not all(isinstance(call.output, Tensor) for call in calls):
            reasons.append(f"{name} gives something other than a tensor")
        if name in trace.weight_read:
            reasons.append(f"the weight of {name} is also used elsewhere")
        if name in trace.called_otherwise:
            reasons.append(f"{name} is also used on something other than the input")
    return reasons
