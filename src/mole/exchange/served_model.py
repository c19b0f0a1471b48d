"""A trained network as an ONNX file that takes morphed data (docs/format.md): what it says of itself.

The developer writes it (`mole export`), and any inference server can run it. It says which key its data was
morphed with, so that a request of another key is refused and not answered at random. Whoever serves it may
have it from anywhere: it is read as a hostile file.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mole.errors import FileError, MoleError
from mole.limits import MAX_CLASSES
from mole.protection.onnx_file import facts_in, read_model
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Shape, check_shape
from mole.storage.typed_json import Fields, FormatError, parse_json

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

FORMAT, VERSION = "mole-model", 1
INPUT, OUTPUT = "morphed", "probabilities"
DATATYPE = "FP32"  # of both, in the words of the Open Inference Protocol
MAX_MODEL_BYTES = (1 << 31) - 1  # what protobuf can hold
FINGERPRINT_DIGITS = 32


@dataclass(frozen=True)
class Images:
    """What was done to images before they were morphed, as far as the developer knows it.

    Attributes:
        normalisation: what the network expects; None for pixels between 0 and 1.
        mode, resize: how images were brought to its shape.
        layer_fingerprint: of the first layer that the data was morphed for.
        front, clip: digest of the front that made features of them, and the length these were clipped to.
    """

    normalisation: Normalisation | None = None
    mode: str | None = None
    resize: str | None = None
    layer_fingerprint: str | None = None
    front: str | None = None
    clip: float | None = None


@dataclass(frozen=True)
class ServedFacts:
    """What a served network is.

    Attributes:
        network: a name for people.
        input_shape: of one morphed sample, with the zeros that fill its tiles.
        classes: how many it tells apart.
        class_names: their names, if there are any.
        key_fingerprint: the key of its augmented layer; None for a network on plain data.
        images: what was done to images before; None where the developer did not say.
    """

    network: str
    input_shape: Shape
    classes: int
    class_names: tuple[str, ...] | None = None
    key_fingerprint: str | None = None
    images: Images | None = None

    def to_json(self) -> str:
        """What its file, and a server's metadata, say of it.

        >>> ServedFacts.parse(ServedFacts("vgg", (3, 8, 8), 2, ("a", "b")).to_json()).class_names
        ('a', 'b')
        """
        return json.dumps({"version": VERSION, **asdict(self)})

    @classmethod
    def parse(cls, text: bytes | str) -> "ServedFacts":
        """Read what `to_json` wrote.

        Raises:
            FormatError: if it does not follow the format.
        """
        return cls._of(parse_json(text))

    @classmethod
    def _of(cls, fields: Fields) -> "ServedFacts":
        if fields.whole("version") != VERSION:
            raise FormatError("it is of another version: upgrade morphed-learning")
        classes = fields.whole("classes", least=1, most=MAX_CLASSES)
        names = fields.optional("class_names", fields.texts)
        if names is not None and len(names) != classes:
            raise FormatError(f"it has {len(names)} names of {classes} classes")
        key = fields.optional("key_fingerprint", fields.text)
        if key is not None and (len(key) != FINGERPRINT_DIGITS or not set(key) <= set("0123456789abcdef")):
            raise FormatError("its field 'key_fingerprint' is not a fingerprint")
        try:
            images = fields.optional("images", fields.object)
            return cls(
                fields.text("network"), check_shape(fields.wholes("input_shape")), classes, names, key,
                None if images is None else _images(images),
            )  # fmt: skip
        except MoleError as error:
            raise FormatError(str(error)) from None


@dataclass(frozen=True)
class ServedFile:
    """An ONNX file of such a network: where it lies, what it says, and the SHA-256 of its bytes."""

    path: Path
    facts: ServedFacts
    digest: str


def read_served(path: Path) -> ServedFile:
    """Read what a served network says of itself, checked.

    Raises:
        FileError: if it is no such file, or holds what it may not hold.
    """
    model, digest = read_model(path, "network to serve", MAX_MODEL_BYTES, "serve")
    try:
        fields = facts_in(model, FORMAT, VERSION)
        if fields is None:
            raise FormatError("its metadata does not say what it takes (`mole export` writes that)")
        facts = ServedFacts._of(fields)
        _check_ends(model, facts)
    except FormatError as error:
        raise FileError(f"{path} is an ONNX file, but not a network to serve: {error}") from None
    return ServedFile(path, facts, digest)


def is_served(path: Path) -> bool:
    """Whether an ONNX file says that it is a network to serve."""
    model, _ = read_model(path, "network to serve", MAX_MODEL_BYTES, "serve")
    return any(entry.key == FORMAT for entry in model.metadata_props)


def _images(fields: Fields) -> Images:
    said = fields.optional("normalisation", fields.object)
    normalisation = None if said is None else Normalisation(said.numbers("mean"), said.numbers("std"))
    texts: dict[str, Any] = {
        name: fields.optional(name, fields.text)
        for name in ("mode", "resize", "layer_fingerprint", "front")
    }
    return Images(normalisation, clip=fields.optional("clip", fields.number), **texts)


def _check_ends(model: "ModelProto", facts: ServedFacts) -> None:
    """See that input and output are what the metadata says.

    Raises:
        FormatError: if they are not.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    if [value.name for value in inputs] != [INPUT] or [one.name for one in model.graph.output] != [OUTPUT]:
        raise FormatError(f"it has other inputs and outputs than '{INPUT}' and '{OUTPUT}'")
    if _sides(inputs[0]) != facts.input_shape or _sides(model.graph.output[0]) != (facts.classes,):
        raise FormatError("its input and output have other shapes than its metadata says")


def _sides(value: "ValueInfoProto") -> Shape:
    """Shape of a sample; the first axis is a batch of any size, in 32-bit floats."""
    tensor = value.type.tensor_type
    sides = [side.dim_value for side in tensor.shape.dim]
    if tensor.elem_type != 1 or not sides or sides[0]:
        raise FormatError("its input and output are not batches, of any size, of 32-bit floats")
    return tuple(sides[1:])
