"""Export a model's first layer for the data provider."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

from mole.errors import ParameterError, UnsupportedLayerError
from mole.scheme.convolution import features_of
from mole.scheme.first_layer import FirstLayer, Padding
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape
from mole.torch.find import FoundLayer, find_first_layer

# Relative difference between what the layer does and what its weights say, by bytes per number.
TOLERANCES = {8: 1e-4, 4: 1e-4, 2: 2e-2}

Convolutional = nn.Conv1d | nn.Conv2d | nn.Conv3d


def export_first_layer(
    model: nn.Module,
    input_shape: Shape,
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> FirstLayer:
    """The first layer of a model, as the provider needs it.

        layer = export_first_layer(model, (3, 32, 32), mean=(0.49, 0.48, 0.45), std=(0.25, 0.24, 0.26))
        mole.save(layer, "first-layer.safetensors")

    Args:
        model: the network, trained on similar public data.
        input_shape: shape of one sample, such as (3, 32, 32).
        mean: what is subtracted from each channel before the network, on a scale of 0 to 1.
        std: what each channel is then divided by.

    Raises:
        UnsupportedLayerError: with every reason why the model has no first layer to replace.
    """
    if (mean is None) != (std is None):
        raise ParameterError("a normalisation needs both mean and std: give both or none")
    normalisation = None if mean is None or std is None else Normalisation(mean, std)  # type: ignore[arg-type]
    return describe(find_first_layer(model, input_shape), normalisation)


def describe(found: FoundLayer, normalisation: Normalisation | None = None) -> FirstLayer:
    """A found layer's weights and hyper-parameters, without PyTorch, checked against what the layer did."""
    layer = _description(found, normalisation)
    ours, seen = features_of(layer, _numpy(found.batch)), _numpy(found.features)
    tolerance = TOLERANCES[found.batch.element_size()]
    if seen.shape != ours.shape or not _close(ours, seen, tolerance):
        raise _refusal(
            found, f"this {type(found.module).__name__} computes something other than its weights say"
        )
    return layer


def _description(found: FoundLayer, normalisation: Normalisation | None) -> FirstLayer:
    module, input_shape = found.module, tuple(found.batch.shape[1:])
    if isinstance(module, nn.Linear):
        return FirstLayer.linear(
            _numpy(module.weight), _bias(module), input_shape=input_shape, normalisation=normalisation
        )
    if not isinstance(module, Convolutional):
        raise _refusal(found, "it is already an augmented layer")
    if module.padding_mode != "zeros":
        raise _refusal(found, f"its padding_mode is '{module.padding_mode}', and only 'zeros' is supported")
    if len(found.padding) not in (0, len(module.kernel_size)):
        raise _refusal(found, "the model pads its input and then changes its shape")
    return FirstLayer.conv(
        _numpy(module.weight),
        _bias(module),
        input_shape=input_shape,
        stride=module.stride,
        padding=_padding(module, added=found.padding),
        dilation=module.dilation,
        groups=module.groups,
        normalisation=normalisation,
    )


def _padding(module: Convolutional, *, added: Padding) -> Padding:
    """Zeros before and after each axis: the layer's own, and those that the model added before it."""
    if module.padding == "valid":
        own = [(0, 0) for _ in module.kernel_size]
    elif module.padding == "same":  # the odd one goes after, as in PyTorch
        totals = [d * (k - 1) for d, k in zip(module.dilation, module.kernel_size, strict=True)]
        own = [(total // 2, total - total // 2) for total in totals]
    else:
        own = [(int(side), int(side)) for side in module.padding]
    pairs = zip(own, added or [(0, 0)] * len(own), strict=True)
    return tuple((own[0] + more[0], own[1] + more[1]) for own, more in pairs)


def _close(ours: Array, seen: Array, tolerance: float) -> bool:
    """Whether every sample's features agree."""
    return all(
        float(np.linalg.norm(one - other)) <= tolerance * float(np.linalg.norm(other)) + 1e-6
        for one, other in zip(ours, seen, strict=True)
    )


def _refusal(found: FoundLayer, reason: str) -> UnsupportedLayerError:
    return UnsupportedLayerError(f"layer '{found.name}' cannot be replaced", [reason])


def _bias(module: nn.Linear | Convolutional) -> Array | None:
    return None if module.bias is None else _numpy(module.bias)


def _numpy(tensor: Tensor) -> Array:
    """A 32-bit copy on the CPU: exact for half precision, and all that a first layer needs."""
    array: Array = tensor.detach().float().cpu().numpy().copy()
    return array
