"""First layers and augmented layers as files (docs/format.md)."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mole.errors import LayerFileError, MoleError, ShapeError
from mole.limits import MAX_STEP
from mole.quantities import joined
from mole.scheme.augmented import STORED_DTYPES, AugmentedLayer
from mole.scheme.first_layer import MAX_SPATIAL_AXES, FirstLayer, Padding
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import LAYOUTS
from mole.scheme.morphing import narrow
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array
from mole.storage.checked import load_checked, read_metadata, save_checked, write_checked
from mole.storage.stores import Store, StoredFile
from mole.storage.typed_json import Fields, FormatError, parse_value

FIRST_LAYER = "mole-first-layer"
AUGMENTED_LAYER = "mole-augmented-layer"
VERSION = 1
IN_FACTORS = 2  # the version of an augmented layer with two factors, which older readers cannot use
VERSIONS = {FIRST_LAYER: (VERSION,), AUGMENTED_LAYER: (VERSION, IN_FACTORS)}
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
    form, version = _check_form(path)
    tensors, metadata = load_checked(path)
    try:
        values = {name: parse_value(text) for name, text in metadata.items() if name != "format"}
        fields = Fields(values)
        _check_names(tensors, version)
        _check_numbers(tensors)
        make = _first_layer if form == FIRST_LAYER else _augmented_layer
        return make(tensors, fields)
    except MoleError as error:
        raise LayerFileError(f"{path} does not describe a usable layer: {error}") from None
    except FormatError as error:
        raise LayerFileError(
            f"{path} has a header that does not follow the format ({error}): ask its sender for another"
        ) from None


def load_first_layer(path: str | PathLike[str] | StoredFile | FirstLayer) -> FirstLayer:
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
        _check_padding(layer.padding)
        form, weight, fields = FIRST_LAYER, layer.weight, _first_layer_fields(layer)
    elif not isinstance(layer, AugmentedLayer):
        raise LayerFileError(
            f"{path}: a {type(layer).__name__} is not a layer; a key is saved with key.save"
        )
    else:
        form, weight, fields = AUGMENTED_LAYER, layer.weight, _augmented_layer_fields(layer)
    if weight.dtype.name not in STORED_DTYPES:
        raise LayerFileError(
            f"{path}: a layer is stored as {' or '.join(STORED_DTYPES)}, not {weight.dtype}"
        )
    tensors, version = {"weight": weight}, VERSION
    if isinstance(layer, AugmentedLayer) and layer.mixing is not None:
        tensors["mixing"], version = layer.mixing, IN_FACTORS
    if layer.bias is not None:
        tensors["bias"] = narrow(layer.bias, weight.dtype)
    if layer.normalisation is not None:
        fields["mean"], fields["std"] = layer.normalisation.mean, layer.normalisation.std
    metadata = {name: json.dumps(value) for name, value in fields.items()}
    return tensors, {"format": form, "version": str(version), **metadata}


def _check_form(path: Path | StoredFile) -> tuple[str, int]:
    metadata = read_metadata(path)
    form, version = metadata.get("format"), metadata.get("version", "none")
    if form not in (FIRST_LAYER, AUGMENTED_LAYER):
        raise LayerFileError(
            f"{path} is a safetensors file, but not a Morphed Learning layer: "
            "give the file that `mole export-layer` wrote for the developer"
        )
    if version not in map(str, VERSIONS[form]):
        raise LayerFileError(
            f"{path} has format version {version[:9]!r} and this program knows "
            f"{joined([*map(str, VERSIONS[form])])}: upgrade morphed-learning"
        )
    return form, int(version)


def _check_names(tensors: Mapping[str, Array], version: int) -> None:
    """A weight, a bias if there is one, and in the second version the other factor."""
    wanted, words = {"weight"}, "a weight and a bias"
    if version == IN_FACTORS:
        wanted, words = {"weight", "mixing"}, "a weight, a mixing and a bias"
    if set(tensors) - {"bias"} != wanted:
        raise FormatError(f"it has other tensors than {words}")


def _check_numbers(tensors: Mapping[str, Array]) -> None:
    for tensor in tensors.values():
        if tensor.dtype.name not in STORED_DTYPES:
            raise FormatError(f"its numbers are {tensor.dtype}")
        if not tensor.ndim:
            raise FormatError("it has a single number where a weight or a bias should be")
        for start in range(0, len(tensor), ROWS_AT_ONCE):
            if not np.isfinite(tensor[start : start + ROWS_AT_ONCE]).all():
                raise ShapeError("its numbers have a NaN or an infinity")


def _first_layer_fields(layer: FirstLayer) -> dict[str, Any]:
    return {
        "kind": layer.kind,
        "input_shape": layer.input_shape,
        "output_shape": layer.output_shape,
        **_hyper_parameters(LayerGeometry.of(layer)),
    }


def geometry_fields(geometry: LayerGeometry) -> dict[str, Any]:
    """A geometry as it stands in headers, where there is no weight to show the kernel's sides."""
    return {"kernel": geometry.kernel, **_hyper_parameters(geometry)}


def _hyper_parameters(geometry: LayerGeometry) -> dict[str, Any]:
    return {name: getattr(geometry, name) for name in ("stride", "padding", "dilation", "groups")}


def _check_padding(padding: Padding) -> Padding:
    """Layers that leave out positions at an end are made here for filled tiles, and never exchanged."""
    if any(min(pair) < 0 for pair in padding):
        raise ShapeError("padding must not be negative")
    return padding


def _first_layer(tensors: Mapping[str, Array], fields: Fields) -> FirstLayer:
    return FirstLayer(
        weight=tensors["weight"],
        bias=tensors.get("bias"),
        input_shape=fields.wholes("input_shape"),
        stride=fields.wholes("stride"),
        padding=_check_padding(fields.pairs("padding")),
        dilation=fields.wholes("dilation"),
        groups=fields.whole("groups"),
        normalisation=_normalisation(fields),
    )


def _augmented_layer_fields(layer: AugmentedLayer) -> dict[str, Any]:
    geometry = layer.geometry
    known = {} if geometry is None else geometry_fields(geometry)
    return {
        "input_shape": layer.input_shape,
        "output_shape": layer.output_shape,
        "kappa": layer.kappa,
        "layout": layer.layout,
        "key_fingerprint": layer.key_fingerprint,
        **({} if layer.plain_shape is None else {"plain_shape": layer.plain_shape}),
        **known,
    }


def _augmented_layer(tensors: Mapping[str, Array], fields: Fields) -> AugmentedLayer:
    layout = next((known for known in LAYOUTS if known == fields.text("layout")), None)
    if layout is None:
        raise FormatError("its layout is unknown")
    return AugmentedLayer(
        weight=tensors["weight"],
        bias=tensors.get("bias"),
        mixing=tensors.get("mixing"),
        input_shape=fields.wholes("input_shape"),
        output_shape=fields.wholes("output_shape"),
        kappa=fields.whole("kappa"),
        layout=layout,
        key_fingerprint=fields.text("key_fingerprint"),
        normalisation=_normalisation(fields),
        geometry=read_geometry(fields) if "kernel" in fields.names() else None,
        plain_shape=fields.wholes("plain_shape") if "plain_shape" in fields.names() else None,
    )


def read_geometry(fields: Fields) -> LayerGeometry:
    """A geometry from a header, checked."""
    kernel, stride, dilation = (fields.wholes(name) for name in ("kernel", "stride", "dilation"))
    padding = fields.pairs("padding")
    lengths = {len(numbers) for numbers in (kernel, stride, dilation, padding)}
    if (
        len(lengths) != 1
        or len(kernel) > MAX_SPATIAL_AXES
        or min((*kernel, *stride, *dilation), default=1) < 1
        or max((*kernel, *stride, *dilation, *sum(padding, ())), default=1) > MAX_STEP
        or min(sum(padding, ()), default=0) < 0
    ):
        raise FormatError("its geometry is not that of a layer")
    return LayerGeometry(kernel, stride, padding, dilation, fields.whole("groups", least=1))


def _normalisation(fields: Fields) -> Normalisation | None:
    if "mean" not in fields.names():
        return None
    return Normalisation(fields.numbers("mean"), fields.numbers("std"))
