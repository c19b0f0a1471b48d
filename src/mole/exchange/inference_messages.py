"""What client and server say to each other: messages of the Open Inference Protocol (KServe v2).

A request and an answer are alike: tensors by name, an id, and parameters. Over HTTP they are JSON, with the
numbers in it or, as the protocol's extension for binary tensors has it, in bytes behind it; over gRPC they
are protobuf (`mole.exchange.inference_protobuf`). Either side takes the other's for hostile.
"""

import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mole.foreign_text import shown
from mole.limits import MAX_HEADER_BYTES, MAX_INLINE_BYTES, MAX_TENSORS
from mole.scheme.shapes import Shape, element_count
from mole.storage.typed_json import Fields, FormatError, is_number, is_text, is_whole, parse_json

LENGTH_HEADER = "Inference-Header-Content-Length"
KEY_PARAMETER = "key_fingerprint"  # of a request: which key its data was morphed with
LONGEST_ID = 256
MAX_AXES = 8
NUMBER_TYPES = {"FP32": "<f4"}  # what networks of ours take and give
Part = Literal["inputs", "outputs"]
Value = str | int | float | bool


@dataclass(frozen=True, eq=False)
class Tensor:
    """Numbers with a name: as bytes, in row-major order and little-endian, or as a list of numbers."""

    name: str
    datatype: str
    shape: Shape
    content: bytes | Sequence[Any]

    @classmethod
    def of(cls, name: str, values: npt.NDArray[np.float32]) -> "Tensor":
        """32-bit floats."""
        return cls(name, "FP32", values.shape, np.ascontiguousarray(values, "<f4").tobytes())

    def floats(self) -> npt.NDArray[np.float32]:
        """Its numbers, (*shape).

        Raises:
            FormatError: if they are not 32-bit floats, or not as many as the shape says.
        """
        what = f"the tensor '{shown(self.name)}'"
        if self.datatype not in NUMBER_TYPES:
            raise FormatError(f"{what} is {shown(self.datatype)}, and has to be FP32")
        if isinstance(self.content, bytes):
            if len(self.content) != 4 * element_count(self.shape):
                said = 4 * element_count(self.shape)
                raise FormatError(f"{what} has {len(self.content)} bytes, and its shape says {said}")
            return np.frombuffer(self.content, "<f4").reshape(self.shape)
        try:
            values = np.asarray(self.content)
        except ValueError:  # lists of several lengths
            raise FormatError(f"{what} has lists of several lengths") from None
        if values.dtype.kind not in "iuf" and values.size:
            raise FormatError(f"{what} holds something else than numbers")
        if values.size != element_count(self.shape):
            raise FormatError(
                f"{what} has {values.size} numbers, and its shape says {element_count(self.shape)}"
            )
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which whoever asked refuses
            return values.astype(np.float32).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Message:
    """A request, or an answer.

    Attributes:
        tensors: inputs of a request, outputs of an answer.
        id: the client's name for the request, which the answer repeats.
        parameters: further facts by name.
        wanted: of a request: the names of the outputs that are asked for; none for all.
        is_binary: of a request: whether the answer's numbers should be bytes.
        model_name: of an answer: who gave it.
    """

    tensors: tuple[Tensor, ...]
    id: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    is_binary: bool = False
    model_name: str = ""

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name.

        Raises:
            FormatError: if there is none.
        """
        for one in self.tensors:
            if one.name == name:
                return one
        raise FormatError(f"it has no tensor '{name}'")


def pack(message: Message, part: Part, *, binary: bool) -> tuple[bytes, int | None]:
    """A message for HTTP, and how many bytes of it are JSON where others follow."""
    described, rest = [], []
    for tensor in message.tensors:
        fields: dict[str, Any] = {
            "name": tensor.name, "datatype": tensor.datatype, "shape": [*tensor.shape],
        }  # fmt: skip
        if binary:
            raw = tensor.floats().tobytes()
            fields["parameters"] = {"binary_data_size": len(raw)}
            rest.append(raw)
        else:
            fields["data"] = tensor.floats().reshape(-1).tolist()
        described.append(fields)
    content: dict[str, Any] = {part: described}
    if message.model_name:
        content["model_name"] = message.model_name
    if message.id:
        content["id"] = message.id
    parameters = {**message.parameters, **({"binary_data_output": True} if message.is_binary else {})}
    if parameters:
        content["parameters"] = parameters
    if message.wanted:
        content["outputs"] = [{"name": name} for name in message.wanted]
    head = json.dumps(content).encode()
    return b"".join([head, *rest]), len(head) if binary else None


def unpack(body: bytes, part: Part, header_length: str | None = None) -> Message:
    """A message from HTTP.

    Args:
        body: all of it.
        part: which of its fields has the tensors.
        header_length: what the header of that name says, where there is one.

    Raises:
        FormatError: if it does not follow the protocol.
    """
    head, rest = body, memoryview(b"")
    if header_length is not None:
        if not (header_length.isascii() and header_length.isdigit() and len(header_length) < 12):
            raise FormatError(f"its header {LENGTH_HEADER} is not a number")
        length = int(header_length)
        if length > len(body):
            raise FormatError(f"its header {LENGTH_HEADER} says {length} bytes, and it has {len(body)}")
        head, rest = body[:length], memoryview(body)[length:]
    most = MAX_INLINE_BYTES if header_length is None else MAX_HEADER_BYTES
    if len(head) > most:
        raise FormatError(
            f"it has {len(head)} bytes of JSON, and at most {most} are taken: send numbers as binary data"
        )
    fields = parse_json(head)
    tensors, used, binary_outputs = [], 0, False
    for inner in _several(fields, part):
        tensor, size = _tensor(inner, rest[used:])
        tensors.append(tensor)
        used += size
    if used != len(rest):
        raise FormatError(f"it has {len(rest)} bytes of binary data, and its tensors say {used}")
    wanted = []
    if part == "inputs" and "outputs" in fields.names():
        for inner in _several(fields, "outputs"):
            wanted.append(inner.text("name"))
            binary_outputs = binary_outputs or _parameters(inner).get("binary_data") is True
    parameters = _parameters(fields)
    return Message(
        tuple(tensors), _id(fields), parameters, tuple(wanted),
        binary_outputs or parameters.get("binary_data_output") is True,
        fields.text("model_name") if "model_name" in fields.names() else "",
    )  # fmt: skip


def _several(fields: Fields, part: str) -> list[Fields]:
    found = fields.value(part)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise FormatError(f"its field '{part}' is not a list of objects")
    if len(found) > MAX_TENSORS:
        raise FormatError(f"its field '{part}' has more than {MAX_TENSORS} entries")
    return [Fields(one) for one in found]


def _tensor(fields: Fields, rest: memoryview) -> tuple[Tensor, int]:
    """One tensor, and how many bytes of the binary data are its own."""
    name, datatype, shape = (
        fields.text("name"),
        fields.text("datatype"),
        check_sides(fields.wholes("shape")),
    )
    size = _parameters(fields).get("binary_data_size")
    if size is None:
        data = fields.value("data")
        if not isinstance(data, list):
            raise FormatError("its field 'data' is not a list")
        return Tensor(name, datatype, shape, data), 0
    if not is_whole(size) or not 0 <= int(size) <= len(rest):
        raise FormatError(
            f"the tensor '{shown(name)}' has a 'binary_data_size' that its message does not hold"
        )
    return Tensor(name, datatype, shape, bytes(rest[: int(size)])), int(size)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone: elsewhere nothing is said in clear.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_sides(shape: Sequence[int]) -> Shape:
    """The shape of a tensor, as far as it can be one.

    Raises:
        FormatError: if it has too many axes, or a side below zero.
    """
    if not 1 <= len(shape) <= MAX_AXES or any(side < 0 for side in shape):
        raise FormatError("a tensor's shape is not one: one to eight whole numbers")
    return tuple(shape)


def _parameters(fields: Fields) -> dict[str, Value]:
    if "parameters" not in fields.names() or fields.value("parameters") is None:
        return {}
    inner = fields.object("parameters")
    found = {name: inner.value(name) for name in inner.names()}
    if not all(is_text(one) or is_number(one) or isinstance(one, bool) for one in found.values()):
        raise FormatError("its parameters are not texts, numbers, or true and false")
    return found


def _id(fields: Fields) -> str:
    text = fields.text("id") if "id" in fields.names() and fields.value("id") is not None else ""
    if len(text) > LONGEST_ID:
        raise FormatError(f"its id has more than {LONGEST_ID} characters")
    return text
