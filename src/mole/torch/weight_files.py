"""A first layer from a file of weights, where there is no model to run.

Such a file does not say which of its tensors comes first, nor how a convolution strides and pads: where
that is open, the user has to say it, and it is never guessed.
"""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from mole.errors import FileError, LayerFileError, ParameterError
from mole.exchange.checkpoint_files import CHECKPOINT
from mole.exchange.layer_files import AUGMENTED_LAYER, FIRST_LAYER
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Shape, channels_last_hint, element_count, shape_text
from mole.storage.checked import read_metadata
from mole.torch.models import read_weights

SHOWN = 8  # names at most


def first_layer_of_file(
    path: Path,
    input_shape: Shape,
    *,
    tensor: str | None = None,
    stride: int | None = None,
    padding: int | None = None,
    normalisation: Normalisation | None = None,
) -> tuple[str, FirstLayer]:
    """The name of the first layer's weight, and the layer.

    Args:
        path: a .safetensors, .pt or .pth file.
        input_shape: shape of a sample.
        tensor: the weight's name; not needed if only one tensor takes samples of that shape.
        stride: needed for a convolution; a linear layer has none.
        padding: likewise.
        normalisation: what the network expects of its input.

    Raises:
        ParameterError: if something that the file does not say has to be given, or does not fit.
        FileError: if the file holds no weights, or no plain first layer.
    """
    _refuse_other_files(path)
    found = read_weights(path)
    name = _choose(found, tensor, input_shape, path)
    weight = found[name].float().numpy()
    bias_of = found.get(name.removesuffix("weight") + "bias") if name.endswith("weight") else None
    bias = None if bias_of is None else bias_of.float().numpy()
    if weight.ndim == 2:
        if stride is not None or padding is not None:
            raise ParameterError(f"'{name}' is a linear layer: leave out stride and padding")
        return name, FirstLayer.linear(weight, bias, input_shape=input_shape, normalisation=normalisation)
    if stride is None or padding is None:
        raise ParameterError(
            f"{path} does not say how the convolution '{name}' strides and pads",
            advice={"stride": None, "padding": None},
        )
    groups = max(1, input_shape[0] // max(1, weight.shape[1]))
    return name, FirstLayer.conv(
        weight, bias, input_shape=input_shape, stride=stride, padding=padding, groups=groups,
        normalisation=normalisation,
    )  # fmt: skip


def _choose(found: Mapping[str, Tensor], tensor: str | None, shape: Shape, path: Path) -> str:
    weights = [name for name, values in found.items() if 2 <= values.ndim <= 5]
    if tensor is not None:
        if tensor not in weights:
            raise ParameterError(f"{path} has no weight '{tensor}': it has {_listed(weights)}")
        return tensor
    fitting = [name for name in weights if _takes(found[name].shape, shape)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        sides = shape_text(shape)
        hint = channels_last_hint(shape) or f"it has {_listed(weights)}"
        raise ParameterError(f"{path} has no weight that takes samples of {sides}: {hint}")
    raise ParameterError(
        f"{path} has {len(fitting)} weights that could be the first layer's",
        advice={"tensor": tuple(fitting[:SHOWN])},
    )


def _takes(weight: Shape, sample: Shape) -> bool:
    """Whether a layer with such a weight could take such samples.

    >>> [_takes(weight, (3, 8, 8)) for weight in ((8, 3, 3, 3), (8, 16, 3, 3), (9, 1, 3, 3))]
    [True, False, True]
    >>> _takes((10, 64), (1, 8, 8)), _takes((10, 32), (1, 8, 8))
    (True, False)
    """
    if len(weight) == 2:
        return weight[1] == element_count(sample)
    if len(weight) != len(sample) + 1 or not weight[1] or sample[0] % weight[1]:
        return False
    return weight[0] % (sample[0] // weight[1]) == 0


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "none") + more


def _refuse_other_files(path: Path) -> None:
    """Refuse files of Morphed Learning whose tensors are not a plain network's."""
    if path.suffix.lower() != ".safetensors" or not path.is_file():
        return
    try:
        metadata = read_metadata(path)
    except LayerFileError:
        return  # read_weights says what is wrong with it
    form = metadata.get("format")
    if form == FIRST_LAYER:
        raise FileError(f"{path} is already a first layer: hand it over as it is")
    if form == AUGMENTED_LAYER:
        raise FileError(f"{path} is an augmented layer, not a plain network: give the network from before")
    if form == CHECKPOINT and metadata.get("augmented", "null") != "null":
        raise FileError(
            f"{path} was trained on morphed data and has an augmented layer in place of its first layer: "
            "give the network from before"
        )
