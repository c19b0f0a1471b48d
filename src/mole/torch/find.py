"""Find a model's first layer: the one linear layer that takes the input, where nothing else does."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mole.errors import UnsupportedLayerError
from mole.scheme.first_layer import Padding
from mole.scheme.shapes import Shape, channels_last_hint, check_shape
from mole.torch.calls import call_reasons
from mole.torch.chance import Chance
from mole.torch.running import unwrapped
from mole.torch.trace import Operation, Trace, trace_input

# How often the model runs up to its first layer, in either mode, to see what it does by chance: where it
# draws random numbers before that layer, and where it seems not to.
GLANCES, FEW = 48, 3
LIMITS: tuple[Chance, ...] = ("lowest", "highest")


class FoundLayer(NamedTuple):
    """A model's first layer, with what went in and came out when the model ran.

    Attributes:
        name: its name in the model.
        module: the layer.
        batch: what the model was given.
        padding: zeros that the model itself put around the batch before this layer, (before, after) for
            each of its last axes; () for none.
        features: what the layer gave.
        operation: what the layer did; None for an augmented layer, or one that does more than one product.
    """

    name: str
    module: nn.Module
    batch: Tensor
    padding: Padding
    features: Tensor
    operation: Operation | None = None


def find_first_layer(model: nn.Module, input_shape: Shape) -> FoundLayer:
    """Run the model on a random batch and return the layer that takes its input.

    The model runs several times, in both modes and with different random numbers, because what it does to
    its input by chance has to be seen as well.

    Args:
        model: any module that takes a batch of samples as its first argument.
        input_shape: shape of one sample as the model takes it, such as (3, 32, 32).

    Raises:
        UnsupportedLayerError: with every reason why no layer could be replaced.
    """
    return _find(model, input_shape, thorough=True)


def layer_in_use(model: nn.Module, input_shape: Shape) -> FoundLayer:
    """The layer that takes the input of a model that was looked at already: one run, in evaluation mode."""
    return _find(model, input_shape, thorough=False)


def _find(model: nn.Module, input_shape: Shape, *, thorough: bool) -> FoundLayer:
    model = unwrapped(model)
    _refuse_missing_values(model)
    with torch.inference_mode(False):  # tensors made in inference mode are dispatched differently
        batch = _test_batch(model, check_shape(input_shape))
    trace = trace_input(model, batch, training=False)
    if trace.error is not None:
        first_line = (str(trace.error).splitlines() or [type(trace.error).__name__])[0]
        raise UnsupportedLayerError(
            f"{type(model).__name__} does not run on a batch of shape {tuple(batch.shape)}",
            [channels_last_hint(tuple(batch.shape[1:])) or first_line],
        ) from trace.error
    reasons = _reasons(trace)
    if not reasons:
        ((name, calls),) = trace.taken_by.items()
        others = _other_runs(model, batch, trace) if thorough else iter(())
        reasons = _reasons_of_all(name, model.get_submodule(name), trace, others)
    elif thorough:
        reasons += _reasons(trace_input(model, batch, training=True))
    if reasons:
        raise UnsupportedLayerError(
            f"no first layer of {type(model).__name__} can be replaced", list(dict.fromkeys(reasons))
        )
    padding, features, operation = calls[0]
    return FoundLayer(name, model.get_submodule(name), batch, padding, features, operation)


def _other_runs(model: nn.Module, batch: Tensor, trace: Trace) -> Iterator[tuple[bool, Trace]]:
    """Further runs, each with its mode: a random flip shows in some of them only."""
    training = trace_input(model, batch, training=True)
    yield True, training
    for chance in LIMITS if training.random else ():
        yield True, trace_input(model, batch, training=True, chance=chance)
    for mode, run in ((False, trace), (True, training)):
        glances = (*LIMITS, *range(1, GLANCES)) if run.random_before else range(1, FEW)
        for chance in glances:
            yield mode, trace_input(model, batch, training=mode, chance=chance, whole=False)


def _reasons_of_all(
    name: str, layer: nn.Module, trace: Trace, others: Iterator[tuple[bool, Trace]]
) -> list[str]:
    """What stands in the way in any run; the search ends with the first run that shows something."""
    first, *again = trace.taken_by[name]
    reasons = list(chain(*(call_reasons(name, layer, first, call, training=False) for call in again)))
    settled = None  # the first call while training, which later ones have to agree with
    for training, other in others:
        if reasons:
            break
        reasons += _reasons(other)
        if set(other.taken_by) - {name}:
            reasons.append(f"the input goes to several layers: {', '.join({name: 0, **other.taken_by})}")
        for call in () if reasons or other.error else other.taken_by[name]:
            reasons += call_reasons(name, layer, first, call, training=training, settled=settled)
            settled = call if training and settled is None else settled
    return reasons


def _refuse_missing_values(model: nn.Module) -> None:
    for name, tensor in chain(model.named_parameters(), model.named_buffers()):
        if tensor.is_meta:
            raise UnsupportedLayerError(
                f"no first layer of {type(model).__name__} can be replaced",
                [
                    f"'{name}' is on the meta device and has no values: load the model's weights first "
                    "(model.to_empty(device='cpu'), then load_state_dict)"
                ],
            )


def _test_batch(model: nn.Module, input_shape: Shape) -> Tensor:
    """Two samples of noise and a flat one, on the device and in the precision of the model's weights."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    batch = torch.randn(3, *input_shape, generator=generator, device="cpu")
    batch[2] = 1
    weights = (tensor for tensor in model.parameters() if tensor.is_floating_point())
    like = next(weights, batch)
    return batch.to(device=like.device, dtype=like.dtype)


def _reasons(trace: Trace) -> list[str]:
    """Everything that stands in the way of replacing one layer."""
    reasons = [f"the input goes through {touch}" for touch in dict.fromkeys(trace.touched)]
    if len(trace.taken_by) > 1:
        reasons.append(f"the input goes to several layers: {', '.join(trace.taken_by)}")
    if trace.error is not None:  # a model may need more than a batch to train
        return reasons
    if not trace.taken_by:
        reasons.append("no Linear, Conv1d, Conv2d or Conv3d layer takes the input itself")
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
