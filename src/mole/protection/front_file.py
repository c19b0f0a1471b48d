"""A front: the developer's network from images to features, as an ONNX file that nobody need trust.

It comes from the other side, so it is read as a hostile file (`mole.protection.onnx_file`). What it
computes is not checked, and need not be: the certificate holds for any front.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mole.errors import FileError, MoleError
from mole.protection.onnx_file import facts_in, read_model
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Shape, check_shape, element_count, shape_text
from mole.storage.typed_json import FormatError

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

FORMAT, VERSION = "mole-front", 1
MAX_FRONT_BYTES = 1 << 30  # a gigabyte: a large vision transformer in 32 bits
MAX_FEATURES_OF_A_FRONT = 1 << 20


@dataclass(frozen=True)
class Front:
    """What a front's file says of it.

    Attributes:
        path: the file.
        input_shape: of one image as it takes it.
        features: shape of what it gives for one image.
        normalisation: what it expects of its input; None for pixels between 0 and 1.
        digest: SHA-256 of the file.
    """

    path: Path
    input_shape: Shape
    features: Shape
    normalisation: Normalisation | None
    digest: str

    @property
    def dimensions(self) -> int:
        """How many numbers it gives for one image: the certificate's d."""
        return element_count(self.features)

    def __str__(self) -> str:
        return f"{shape_text(self.input_shape)} to {shape_text(self.features)} features"


def read_front(path: Path) -> Front:
    """Read what a front says of itself, checked.

    Raises:
        FileError: if it is no front, or holds what a front may not hold.
    """
    model, digest = read_model(path, "front", MAX_FRONT_BYTES)
    try:
        return _facts(path, model, digest)
    except (FormatError, MoleError) as error:
        raise FileError(f"{path} is an ONNX file, but not a front: {error}") from None


def front_metadata(input_shape: Shape, normalisation: Normalisation | None) -> dict[str, str]:
    """What a front's file says of itself, as ONNX keeps it."""
    facts = {"version": VERSION, "input_shape": input_shape}
    if normalisation is not None:
        facts |= {"mean": normalisation.mean, "std": normalisation.std}
    return {FORMAT: json.dumps(facts)}


def _facts(path: Path, model: "ModelProto", digest: str) -> Front:
    fields = facts_in(model, FORMAT, VERSION)
    if fields is None:
        raise FormatError("its metadata does not say what it takes (`mole front make` writes that)")
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    if len(inputs) != 1 or len(model.graph.output) != 1:
        raise FormatError("it has more than one input or output")
    input_shape = check_shape(fields.wholes("input_shape"))
    if _sides(inputs[0]) != input_shape:
        raise FormatError("its input has another shape than its metadata says")
    features = check_shape(_sides(model.graph.output[0]), MAX_FEATURES_OF_A_FRONT)
    has_mean = "mean" in fields.names()
    normalisation = Normalisation(fields.numbers("mean"), fields.numbers("std")) if has_mean else None
    return Front(path, input_shape, features, normalisation, digest)


def _sides(value: "ValueInfoProto") -> Shape:
    """Shape of an input or output, without its first axis: the batch."""
    tensor = value.type.tensor_type
    if tensor.elem_type != 1:  # float32
        raise FormatError("its input and output are not 32-bit floats")
    sides = tuple(side.dim_value for side in tensor.shape.dim)
    if len(sides) < 2 or not all(side > 0 for side in sides[1:]):
        raise FormatError("its input and output do not say their sides")
    return sides[1:]
