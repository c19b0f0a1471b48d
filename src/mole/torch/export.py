"""Export a model's first layer for the data provider."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mole.errors import ParameterError, UnsupportedLayerError
from mole.scheme.convolution import features_of
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape, check_shape
from mole.torch.calls import close
from mole.torch.find import FoundLayer, find_first_layer
from mole.torch.module import AugmentedModule
from mole.torch.zeros import on_axes, total


def export_first_layer(
    model: nn.Module,
    input_shape: Shape,
    *,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
) -> FirstLayer:
    """The first layer of a model, as the provider needs it.

        layer = export_first_layer(model, (3, 32, 32), mean=(0.49, 0.48, 0.45), std=(0.25, 0.24, 0.26))
        mole.save(layer, "first-layer.safetensors")

    Args:
        model: the network, trained on similar public data.
        input_shape: shape of one sample as the model takes it, such as (3, 32, 32).
        mean: what is subtracted from each channel before the network, on a scale of 0 to 1; a single
            number for all of them.
        std: what each channel is then divided by.

    Raises:
        UnsupportedLayerError: with every reason why the model has no first layer to replace.
    """
    if (mean is None) != (std is None):
        raise ParameterError("a normalisation needs both mean and std: give both or none")
    normalisation = None
    if mean is not None and std is not None:
        normalisation = Normalisation.of_channels(mean, std, check_shape(input_shape)[0])
    return describe(find_first_layer(model, input_shape), normalisation)


def describe(found: FoundLayer, normalisation: Normalisation | None = None) -> FirstLayer:
    """What a found layer did, without PyTorch, checked against what came out of it."""
    layer = _description(found, normalisation)
    ours = torch.from_numpy(features_of(layer, _numpy(found.batch)))
    if not close(ours, found.features, like=found.batch):
        raise _refusal(found, _other_than_its_weights(found))
    return layer


def _description(found: FoundLayer, normalisation: Normalisation | None) -> FirstLayer:
    operation, input_shape = found.operation, tuple(found.batch.shape[1:])
    if isinstance(found.module, AugmentedModule):
        raise _refusal(found, "it is already an augmented layer")
    mode = getattr(found.module, "padding_mode", "zeros")
    if mode != "zeros":
        raise _refusal(found, f"its padding_mode is '{mode}', and only 'zeros' is supported")
    kernel = getattr(found.module, "kernel_size", ())
    if len(found.padding) > len(kernel):
        raise _refusal(found, "the model pads its input along other axes than the layer's")
    if operation is None:
        raise _refusal(found, _other_than_its_weights(found))
    weight, bias = _numpy(operation.weight), None if operation.bias is None else _numpy(operation.bias)
    if not operation.stride:
        return FirstLayer.linear(weight, bias, input_shape=input_shape, normalisation=normalisation)
    axes = len(operation.stride)
    return FirstLayer.conv(
        weight,
        bias,
        input_shape=input_shape,
        stride=operation.stride,
        padding=on_axes(total(operation.padding, found.padding), axes),
        dilation=operation.dilation,
        groups=operation.groups,
        normalisation=normalisation,
    )


def _other_than_its_weights(found: FoundLayer) -> str:
    return f"this {type(found.module).__name__} computes something other than its weights say"


def _refusal(found: FoundLayer, reason: str) -> UnsupportedLayerError:
    return UnsupportedLayerError(f"layer '{found.name}' cannot be replaced", [reason])


def _numpy(tensor: Tensor) -> Array:
    """A 32-bit copy on the CPU: exact for half precision, and all that a first layer needs."""
    array: Array = tensor.detach().float().cpu().numpy().copy()
    return array
