"""The header of a checkpoint, written and read in one place that needs no PyTorch (docs/format.md)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mole.errors import FileError, LayerFileError, MoleError
from mole.exchange.layer_files import read_geometry
from mole.foreign_text import shown
from mole.limits import MAX_CLASSES
from mole.scheme.shapes import Array, Shape, check_shape
from mole.storage.checked import load_checked, read_metadata
from mole.storage.typed_json import Fields, FormatError, is_number, is_text, is_whole, parse_value

CHECKPOINT, VERSION = "mole-checkpoint", "1"
IN_FACTORS = "2"  # the version with an augmented layer in two factors, which older readers cannot use
FORM = {"format": CHECKPOINT, "version": VERSION}
AUGMENTED = "augmented"  # how the augmented layer is described, beside the facts
KEY_BYTES = 16  # of a fingerprint
TRAINING = "training"  # missing in files of networks that were trained otherwise, or before version 0.6


@dataclass(frozen=True)
class CheckpointFacts:
    """What a network is.

    Attributes:
        network: name of a built-in network, or any other name.
        input_shape: shape of a sample as the network takes it; zeros that fill tiles do not count.
        classes: how many classes it tells apart.
        class_names: their names, if there are any.
        key_fingerprint: the key of its augmented layer; filled in when it is saved.
        training: what it was trained on and how, as plain values by name; None if that is not known.
    """

    network: str
    input_shape: Shape
    classes: int
    class_names: tuple[str, ...] | None = None
    key_fingerprint: str | None = None
    training: Mapping[str, Any] | None = None


class StoredCheckpoint(NamedTuple):
    """A network's tensors by name, what it is, and how its augmented layer is described, if it has one."""

    state: dict[str, Array]
    facts: CheckpointFacts
    augmented: Mapping[str, Any] | None


def checkpoint_metadata(facts: CheckpointFacts, augmented: Mapping[str, Any] | None) -> dict[str, str]:
    """The header of a checkpoint: what its network is, and how its augmented layer is described.

    >>> metadata = checkpoint_metadata(CheckpointFacts("small_resnet", (3, 32, 32), 10), None)
    >>> metadata["format"], metadata["input_shape"], metadata["augmented"]
    ('mole-checkpoint', '[3, 32, 32]', 'null')
    """
    values = {**asdict(facts), AUGMENTED: augmented}
    if facts.training is None:
        del values[TRAINING]
    version = IN_FACTORS if augmented is not None and augmented.get("form") == "factored" else VERSION
    header = {name: json.dumps(value) for name, value in values.items()}
    return {**FORM, "version": version, **header}


def is_checkpoint(path: Path) -> bool:
    """Whether a file says that it is a checkpoint."""
    try:
        return read_metadata(path).get("format") == CHECKPOINT
    except LayerFileError:
        return False


def resume_path(checkpoint: Path) -> Path:
    """Where a training keeps its state until its checkpoint can be written.

    >>> str(resume_path(Path("model.safetensors")))
    'model.safetensors.unfinished'
    """
    return checkpoint.with_name(checkpoint.name + ".unfinished")


def read_facts(path: Path) -> CheckpointFacts:
    """What a checkpoint says of its network, from its header alone; the rest of the file is not read.

    Raises:
        FileError: if the file cannot be read, or is not a checkpoint.
    """
    return _parsed(path, _metadata(path))[0]


def read_checkpoint(path: Path) -> StoredCheckpoint:
    """Read a checkpoint, checked down to the last bit.

    Raises:
        FileError: if the file cannot be read, is damaged, or is not a checkpoint.
    """
    _metadata(path)
    state, metadata = load_checked(path)
    return StoredCheckpoint(state, *_parsed(path, metadata))


def _metadata(path: Path) -> dict[str, str]:
    """The header of a file that says that it is a checkpoint of this version."""
    try:
        metadata = read_metadata(path)
    except LayerFileError:
        if path.is_dir():
            raise FileError(
                f"{path} is a folder, and a checkpoint is a file: give one that training wrote"
            ) from None
        if not path.is_file():
            raise
        metadata = {}
    if metadata.get("format") != CHECKPOINT:
        raise FileError(f"{path} is not a checkpoint: give a file that training wrote")
    if metadata.get("version") not in {VERSION, IN_FACTORS}:
        raise FileError(f"{path} was written by another version: upgrade morphed-learning")
    return metadata


def _parsed(path: Path, metadata: Mapping[str, str]) -> tuple[CheckpointFacts, Mapping[str, Any] | None]:
    """The facts in a header, and how the augmented layer is described."""
    try:
        texts = {name: text for name, text in metadata.items() if name not in {*FORM, "sha256"}}
        header = Fields({name: parse_value(text) for name, text in texts.items()})
        augmented = header.optional(AUGMENTED, header.object)
        return _facts(header), None if augmented is None else _description(augmented)
    except (MoleError, FormatError) as error:
        raise FileError(
            f"{path} does not hold a usable network: its header does not follow the format ({error})"
        ) from None


def _facts(fields: Fields) -> CheckpointFacts:
    """The facts in a header, each in its own type."""
    return CheckpointFacts(
        network=fields.text("network"),
        input_shape=check_shape(fields.wholes("input_shape")),
        classes=fields.whole("classes", most=MAX_CLASSES),
        class_names=fields.optional("class_names", fields.texts),
        key_fingerprint=fields.optional("key_fingerprint", fields.text),
        training=_training(fields.object(TRAINING)) if TRAINING in fields.names() else None,
    )


def _training(fields: Fields) -> dict[str, Any]:
    """How a network was trained: texts, numbers and nothing else, and for how many epochs."""
    values = {name: fields.value(name) for name in sorted(fields.names())}
    for name, value in values.items():
        if value is not None and not (is_text(value) or is_number(value) or is_whole(value)):
            raise FormatError(f"its field '{shown(name)}' is neither text nor a number")
    return {**values, "epochs": fields.whole("epochs", least=1)}


def _description(fields: Fields) -> dict[str, Any]:
    """How an augmented layer is described, each field in its own type."""
    known: dict[str, Any] = {
        "name": fields.text("name"),
        "output_shape": [*fields.wholes("output_shape")],
        "kappa": fields.whole("kappa"),
        "layout": fields.text("layout"),
    }
    if "geometry" in fields.names():
        known["geometry"] = read_geometry(fields.object("geometry"))
    if "input_shape" in fields.names():
        known["input_shape"] = check_shape(fields.wholes("input_shape"))
    return known


def key_of(key_id: Array) -> str:
    """The fingerprint of a key, from the tensor that holds it in a file of weights.

    >>> key_of(np.arange(16, dtype=np.uint8))
    '000102030405060708090a0b0c0d0e0f'

    Raises:
        LayerFileError: if it holds something else; a single number would be taken for a length.
    """
    if key_id.dtype != np.uint8 or key_id.shape != (KEY_BYTES,):
        found = f"{key_id.dtype} of shape {key_id.shape}"
        raise LayerFileError(f"its key_id is {found}, and a fingerprint is uint8 of ({KEY_BYTES},)")
    return key_id.tobytes().hex()
