"""ONNX files as hostile files: of a bounded size, complete in themselves, made of ONNX's own operators.

What such a file computes is not checked here, only that reading and running it does nothing else: no code
of its own, no other files, no loops, and nothing that one run leaves behind for the next. Its metadata
says, in JSON, what it is.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mole.errors import FileError, MissingExtraError
from mole.foreign_text import shown
from mole.quantities import size_text
from mole.storage.atomic import reason_of
from mole.storage.regular import open_regular
from mole.storage.typed_json import Fields, FormatError, parse_value

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

MAX_NODES = 100_000  # a hundred times those of a large vision transformer; they are looked at one by one
STANDARD = {"", "ai.onnx"}
WITHOUT_END = {"If", "Loop", "Scan", "SequenceMap"}  # operators that run others, as long as they like
RANDOM = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
}  # fmt: skip
TRAINING_MODE = 2  # which input of a Dropout makes it a random one
OTHER_FORM = slice(4, 8), b"ORTM"  # where and how onnxruntime knows files of a form of its own


def onnx_package(what: str, extra: str = "front") -> Any:
    """The package ONNX, with its helpers.

    Args:
        what: the word for what is to be read or written, such as 'front'.
        extra: what to install where it is missing.

    Raises:
        MissingExtraError: where it is not installed.
    """
    try:
        import onnx.inliner  # noqa: PLC0415  (an extra; with it come all its helpers)
    except ImportError:
        raise MissingExtraError(f"a {what} is an ONNX file", extra) from None
    return onnx


def read_model(path: Path, what: str, most: int, extra: str = "front") -> tuple["ModelProto", str]:
    """Read an ONNX file of at most so many bytes, and its SHA-256.

    Args:
        path: the file.
        what: the word for what it should be, such as 'front'.
        most: bytes.
        extra: what to install where ONNX is missing.

    Raises:
        FileError: if it cannot be read, or holds what it may not hold.
    """
    onnx = onnx_package(what, extra)
    content = _read(path, what, most)
    where, mark = OTHER_FORM
    if content[where] == mark:  # what is checked here would not be what runs
        raise FileError(f"{path} is not an ONNX file but onnxruntime's own: get the {what} again")
    try:
        model: ModelProto = onnx.load_model_from_string(content)
    except Exception:  # of protobuf's; it has no other way to say that the file is another one
        raise FileError(f"{path} is not an ONNX file, or is damaged: get the {what} again") from None
    if problem := problem_of(model):
        raise FileError(f"{path} cannot be used as a {what}: {problem}")
    return model, hashlib.sha256(content).hexdigest()


def facts_in(model: "ModelProto", form: str, version: int) -> Fields | None:
    """What the metadata of a file says under the name of a form; None where it says nothing.

    Raises:
        FormatError: if it does not follow the format, or has another version.
    """
    texts = {entry.key: entry.value for entry in model.metadata_props}
    if form not in texts:
        return None
    parsed = parse_value(texts[form])
    if not isinstance(parsed, dict):
        raise FormatError("its metadata does not follow the format")
    fields = Fields(parsed)
    if fields.whole("version") != version:
        raise FormatError("it is of another version: upgrade morphed-learning")
    return fields


def problem_of(model: "ModelProto") -> str | None:
    """The first thing that such a file may not hold, in words; None where there is none."""
    return next(_problems(model), None)


def _read(path: Path, what: str, most: int) -> bytes:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise FileError(f"{path} has {size_text(size)}, and a {what} at most {size_text(most)}")
            return file.read()
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {reason_of(error)}") from None


def _problems(model: "ModelProto") -> Iterator[str]:
    """What such a file may not hold, in words."""
    if len(model.graph.node) > MAX_NODES:
        yield f"it has more than {MAX_NODES:,} operators"
    if model.functions:
        yield "it brings functions of its own"
    for node in _nodes(model.graph):
        if node.domain not in STANDARD:
            yield f"its operator {shown(node.op_type)} is not one of ONNX's own"
        if node.op_type in WITHOUT_END:
            yield f"its operator {node.op_type} could run for ever"
        if node.op_type in RANDOM or (node.op_type == "Dropout" and any(node.input[TRAINING_MODE:])):
            # How far its generator has come would tell the next image's row of this image.
            yield f"its operator {node.op_type} is a random one"
    constants = (tensor for part in _attributes(model) for tensor in (part.t, *part.tensors))
    for tensor in (*model.graph.initializer, *constants):
        if tensor.external_data or tensor.data_location:
            yield "its weights lie in other files"
    sparse = any(part.HasField("sparse_tensor") or part.sparse_tensors for part in _attributes(model))
    if model.graph.sparse_initializer or sparse:
        yield "it has sparse weights"


def _attributes(model: "ModelProto") -> Iterator["AttributeProto"]:
    for node in _nodes(model.graph):
        yield from node.attribute


def _nodes(graph: "GraphProto") -> Iterator["NodeProto"]:
    """Every node of a graph; none of those that it may hold has graphs inside."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(inner)
