"""A front: the developer's network from images to features, as an ONNX file that nobody need trust.

It comes from the other side, so it is read as a hostile file: of a bounded size, complete in itself, made
of ONNX's own operators and nothing else, without loops. What it computes is not checked, and need not be:
the certificate holds for any front.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mole.errors import FileError, MissingExtraError, MoleError
from mole.foreign_text import shown
from mole.quantities import size_text
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Shape, check_shape, element_count, shape_text
from mole.storage.typed_json import Fields, FormatError, parse_value

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

FORMAT, VERSION = "mole-front", 1
MAX_FRONT_BYTES = 1 << 30  # a gigabyte: a large vision transformer in 32 bits
MAX_FEATURES_OF_A_FRONT = 1 << 20
STANDARD = {"", "ai.onnx"}
WITHOUT_END = {"If", "Loop", "Scan", "SequenceMap"}  # operators that run others, as long as they like


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
    try:
        import onnx  # noqa: PLC0415  (an extra)
        from google.protobuf.message import DecodeError  # noqa: PLC0415  (comes with it)
    except ImportError:
        raise MissingExtraError("a front is an ONNX file", "front") from None
    content = _read(path)
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError:
        raise FileError(f"{path} is not an ONNX file: ask for the front again") from None
    if problem := next(_problems(model), None):
        raise FileError(f"{path} cannot be used as a front: {problem}")
    try:
        return _facts(path, model, hashlib.sha256(content).hexdigest())
    except (FormatError, MoleError) as error:
        raise FileError(f"{path} is an ONNX file, but not a front: {error}") from None


def front_metadata(input_shape: Shape, normalisation: Normalisation | None) -> dict[str, str]:
    """What a front's file says of itself, as ONNX keeps it."""
    facts = {"version": VERSION, "input_shape": input_shape}
    if normalisation is not None:
        facts |= {"mean": normalisation.mean, "std": normalisation.std}
    return {FORMAT: json.dumps(facts)}


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_FRONT_BYTES:
            raise FileError(
                f"{path} has {size_text(size)}, and a front at most {size_text(MAX_FRONT_BYTES)}"
            )
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None


def _problems(model: "ModelProto") -> Iterator[str]:
    """What a front may not hold, in words."""
    if model.functions:
        yield "it brings functions of its own"
    for node in _nodes(model.graph):
        if node.domain not in STANDARD:
            yield f"its operator {shown(node.op_type)} is not one of ONNX's own"
        if node.op_type in WITHOUT_END:
            yield f"its operator {node.op_type} could run for ever"
    for tensor in model.graph.initializer:
        if tensor.external_data or tensor.data_location:
            yield "its weights lie in other files"
    if model.graph.sparse_initializer:
        yield "it has sparse weights"


def _nodes(graph: "GraphProto") -> Iterator["NodeProto"]:
    """Every node of a graph; none of those that a front may hold has graphs inside."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(inner)


def _facts(path: Path, model: "ModelProto", digest: str) -> Front:
    texts = {entry.key: entry.value for entry in model.metadata_props}
    if FORMAT not in texts:
        raise FormatError("its metadata does not say what it takes (`mole front make` writes that)")
    parsed = parse_value(texts[FORMAT])
    if not isinstance(parsed, dict):
        raise FormatError("its metadata does not follow the format")
    fields = Fields(parsed)
    if fields.whole("version") != VERSION:
        raise FormatError("it is of another version: upgrade morphed-learning")
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
