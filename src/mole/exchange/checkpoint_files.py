"""The header of a checkpoint, written and read in one place that needs no PyTorch (docs/format.md)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from mole.errors import FileError, LayerFileError, MoleError
from mole.scheme.shapes import Array, Shape, check_shape
from mole.storage.checked import load_checked, read_metadata

CHECKPOINT, VERSION = "mole-checkpoint", "1"
FORM = {"format": CHECKPOINT, "version": VERSION}
AUGMENTED = "augmented"  # how the augmented layer is described, beside the facts


@dataclass(frozen=True)
class CheckpointFacts:
    """What a network is.

    Attributes:
        network: name of a built-in network, or any other name.
        input_shape: shape of a sample.
        classes: how many classes it tells apart.
        class_names: their names, if there are any.
        key_fingerprint: the key of its augmented layer; filled in when it is saved.
    """

    network: str
    input_shape: Shape
    classes: int
    class_names: tuple[str, ...] | None = None
    key_fingerprint: str | None = None


FIELDS = tuple(field.name for field in fields(CheckpointFacts))


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
    return {**FORM, **{name: json.dumps(value) for name, value in values.items()}}


def is_checkpoint(path: Path) -> bool:
    """Whether a file says that it is a checkpoint."""
    try:
        return read_metadata(path).get("format") == CHECKPOINT
    except LayerFileError:
        return False


def read_checkpoint(path: Path) -> StoredCheckpoint:
    """Read a checkpoint, checked down to the last bit.

    Raises:
        FileError: if the file cannot be read, is damaged, or is no checkpoint.
    """
    try:
        metadata = read_metadata(path)
    except LayerFileError:
        if not path.is_file():
            raise
        metadata = {}
    if metadata.get("format") != CHECKPOINT:
        raise FileError(f"{path} is no checkpoint: give a file that mole train or save_checkpoint wrote")
    if metadata.get("version") != VERSION:
        raise FileError(f"{path} was written by another version: upgrade morphed-learning")
    state, metadata = load_checked(path)
    try:
        texts = {name: text for name, text in metadata.items() if name not in FORM}
        values = {name: json.loads(text) for name, text in texts.items()}
        augmented = values[AUGMENTED]
        return StoredCheckpoint(state, _facts(values), None if augmented is None else {**augmented})
    except (MoleError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise FileError(
            f"{path} does not hold a usable network: its header does not follow the format"
        ) from None


def _facts(values: Mapping[str, Any]) -> CheckpointFacts:
    """The facts in a header, each in its own type."""
    found = {name: values[name] for name in FIELDS}
    names = found["class_names"]
    return CheckpointFacts(
        **{
            **found,
            "network": str(found["network"]),
            "input_shape": check_shape(found["input_shape"]),
            "classes": int(found["classes"]),
            "class_names": None if names is None else tuple(map(str, names)),
        }
    )
