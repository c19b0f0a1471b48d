"""First layers and augmented layers as files (docs/format.md)."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mole.errors import LayerFileError, MoleError, ShapeError
from mole.scheme.augmented import STORED_DTYPES, AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import LAYOUTS
from mole.scheme.morphing import narrow
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array
from mole.storage.checked import load_checked, read_metadata, save_checked, write_checked
from mole.storage.stores import Store, StoredFile

FIRST_LAYER = "mole-first-layer"
AUGMENTED_LAYER = "mole-augmented-layer"
VERSION = 1
ROWS_AT_ONCE = 256


def save(layer: FirstLayer | AugmentedLayer, path: str | PathLike[str]) -> None:
    """Write a first layer or an augmented layer as safetensors; a file of that name is replaced."""
    save_checked(Path(path), *_contents(layer, path))


def save_into(store: Store, name: str, layer: FirstLayer | AugmentedLayer) -> None:
    """Write a layer as a file of a store, complete or not at all."""
    tensors, metadata = _contents(layer, f"{store.label}/{name}")
    store.make(name, lambda path: write_checked(path, tensors, metadata))


def load(path: str | PathLike[str] | StoredFile) -> FirstLayer | AugmentedLayer:
    """Read a first layer or an augmented layer, checked down to the last bit."""
    path = path if isinstance(path, StoredFile) else Path(path)
    form = _check_form(path)
    tensors, metadata = load_checked(path)
    try:
        fields = {name: json.loads(text) for name, text in metadata.items() if name != "format"}
        if set(tensors) not in ({"weight"}, {"weight", "bias"}):
            raise ValueError("unexpected tensors")
        _check_numbers(tensors)
        make = _first_layer if form == FIRST_LAYER else _augmented_layer
        return make(tensors["weight"], tensors.get("bias"), fields)
    except MoleError as error:
        raise LayerFileError(f"{path} does not describe a usable layer: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise LayerFileError(
            f"{path} has a header that does not follow the format: ask its sender for another"
        ) from None


def load_first_layer(path: str | PathLike[str] | FirstLayer) -> FirstLayer:
    """Read a first layer; one that is read already stays as it is.

    Raises:
        LayerFileError: if the file cannot be read, or holds an augmented layer.
    """
    if isinstance(path, FirstLayer):
        return path
    layer = load(path)
    if not isinstance(layer, FirstLayer):
        raise LayerFileError(f"{path} is an augmented layer, and a first layer is needed here")
    return layer


def load_augmented_layer(path: str | PathLike[str] | StoredFile) -> AugmentedLayer:
    """Read an augmented layer; an error if the file holds a first layer."""
    layer = load(path)
    if not isinstance(layer, AugmentedLayer):
        raise LayerFileError(f"{path} is a first layer, and an augmented layer is needed here")
    return layer


def _contents(
    layer: FirstLayer | AugmentedLayer, path: str | PathLike[str]
) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors and the metadata of a layer's file."""
    if isinstance(layer, FirstLayer):
        form, weight, fields = FIRST_LAYER, layer.weight, _first_layer_fields(layer)
    elif not isinstance(layer, AugmentedLayer):
        raise LayerFileError(f"{path}: a {type(layer).__name__} is no layer; a key is saved with key.save")
    else:
        form, weight, fields = AUGMENTED_LAYER, layer.matrix, _augmented_layer_fields(layer)
    if weight.dtype.name not in STORED_DTYPES:
        raise LayerFileError(
            f"{path}: a layer is stored as {' or '.join(STORED_DTYPES)}, not {weight.dtype}"
        )
    tensors = {"weight": weight}
    if layer.bias is not None:
        tensors["bias"] = narrow(layer.bias, weight.dtype)
    if layer.normalisation is not None:
        fields["mean"], fields["std"] = layer.normalisation.mean, layer.normalisation.std
    metadata = {name: json.dumps(value) for name, value in fields.items()}
    return tensors, {"format": form, "version": str(VERSION), **metadata}


def _check_form(path: Path | StoredFile) -> str:
    metadata = read_metadata(path)
    form, version = metadata.get("format"), metadata.get("version", "none")
    if form not in (FIRST_LAYER, AUGMENTED_LAYER):
        raise LayerFileError(
            f"{path} is a safetensors file, but no Morphed Learning layer: "
            "export the first layer of a model with mole.torch.export_first_layer"
        )
    if version != str(VERSION):
        raise LayerFileError(
            f"{path} has format version {version[:9]!r} and this program knows {VERSION}: "
            "upgrade morphed-learning"
        )
    return form


def _check_numbers(tensors: Mapping[str, Array]) -> None:
    for tensor in tensors.values():
        if tensor.dtype.name not in STORED_DTYPES:
            raise ValueError("unexpected number type")
        for start in range(0, len(tensor), ROWS_AT_ONCE):
            if not np.isfinite(tensor[start : start + ROWS_AT_ONCE]).all():
                raise ShapeError("its numbers have a NaN or an infinity")


def _first_layer_fields(layer: FirstLayer) -> dict[str, Any]:
    return {
        "kind": layer.kind,
        "input_shape": layer.input_shape,
        "output_shape": layer.output_shape,
        "stride": layer.stride,
        "padding": layer.padding,
        "dilation": layer.dilation,
        "groups": layer.groups,
    }


def _first_layer(weight: Array, bias: Array | None, fields: Mapping[str, Any]) -> FirstLayer:
    return FirstLayer(
        weight=weight,
        bias=bias,
        input_shape=fields["input_shape"],
        stride=tuple(fields["stride"]),
        padding=tuple((before, after) for before, after in fields["padding"]),
        dilation=tuple(fields["dilation"]),
        groups=fields["groups"],
        normalisation=_normalisation(fields),
    )


def _augmented_layer_fields(layer: AugmentedLayer) -> dict[str, Any]:
    return {
        "input_shape": layer.input_shape,
        "output_shape": layer.output_shape,
        "kappa": layer.kappa,
        "layout": layer.layout,
        "key_fingerprint": layer.key_fingerprint,
    }


def _augmented_layer(weight: Array, bias: Array | None, fields: Mapping[str, Any]) -> AugmentedLayer:
    if fields["layout"] not in LAYOUTS:
        raise ValueError("unknown layout")
    return AugmentedLayer(
        matrix=weight,
        bias=bias,
        input_shape=fields["input_shape"],
        output_shape=fields["output_shape"],
        kappa=fields["kappa"],
        layout=fields["layout"],
        key_fingerprint=fields["key_fingerprint"],
        normalisation=_normalisation(fields),
    )


def _normalisation(fields: Mapping[str, Any]) -> Normalisation | None:
    return Normalisation(fields["mean"], fields["std"]) if "mean" in fields else None
