"""The checkpoint of a linear head, which the developer returns to the provider (docs/format.md).

It is a checkpoint like others, so that the developer can score it and predict with it; what it was trained
on says besides which front made the features, and how they were clipped. For the provider it is a file from
the other side.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mole.errors import FileError, MoleError
from mole.exchange.checkpoint_files import StoredCheckpoint, key_of, read_checkpoint
from mole.exchange.manifest import Manifest
from mole.foreign_text import shown
from mole.protection.head import Head
from mole.protection.head_file import checked_head
from mole.protection.terms import DIGEST_DIGITS
from mole.scheme.shapes import Array, element_count
from mole.storage.typed_json import Fields, FormatError

LINEAR_HEAD = "linear_head"
TURN, LAST = "1", "2"  # the network's layers: what is augmented, and the classifier of what that gives


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """A linear head as the developer has it: on what the augmented layer gives.

    Attributes:
        head: weights and intercepts, in the augmented layer's secret order.
        augmented: the augmented layer that it was trained with, (d, channels).
        key_fingerprint: names the key of that layer.
        class_names: names of the classes, if the delivery had any.
        front: SHA-256 of the front that made the features.
        clip: what they were clipped to.
        mode, resize: how images became the front's input.
    """

    head: Head
    augmented: Array
    key_fingerprint: str
    class_names: tuple[str, ...] | None
    front: str
    clip: float
    mode: str | None
    resize: str | None


def training_facts(manifest: Manifest, split: str) -> dict[str, Any]:
    """What the checkpoint of a linear head says of the delivery that it was fitted to."""
    protection = manifest.protection
    assert protection is not None  # noqa: S101  (who asks has looked)
    certificate = protection.certificates[split]
    return {
        "delivery": manifest.delivery_id, "network": LINEAR_HEAD, "epochs": 1, "front": protection.front,
        "clip": certificate.clip, "sigma": certificate.sigma, "mode": manifest.mode,
        "resize": manifest.resize,
    }  # fmt: skip


def read_trained_head(path: Path) -> TrainedHead:
    """Read the checkpoint of a linear head, checked.

    Raises:
        FileError: if the file cannot be read, or holds another network.
    """
    stored = read_checkpoint(path)
    if stored.facts.network != LINEAR_HEAD:
        raise FileError(
            f"{path} holds the network '{shown(stored.facts.network)}', and only a linear head can be used "
            f"at home: ask the developer for the network {LINEAR_HEAD}"
        )
    try:
        return _parsed(stored)
    except (FormatError, MoleError) as error:
        raise FileError(f"{path} does not hold a usable head: {error}: ask the developer again") from None


def _parsed(stored: StoredCheckpoint) -> TrainedHead:
    state, facts, _ = stored
    wanted = {f"{TURN}.weight", f"{TURN}.key_id", f"{LAST}.weight", f"{LAST}.bias"}
    if set(state) != wanted:
        raise FormatError("it has other tensors than those of a linear head")
    head = checked_head(state[f"{LAST}.weight"], state[f"{LAST}.bias"])
    augmented = state[f"{TURN}.weight"]
    size = element_count(facts.input_shape)
    if head.classes != facts.classes or head.weight.shape[1] != size or augmented.shape != (size, size):
        raise FormatError("its tensors do not have the shapes that its header says")
    if facts.class_names is not None and len(facts.class_names) != head.classes:
        raise FormatError(f"it has {len(facts.class_names)} names of {head.classes} classes")
    if facts.training is None:
        raise FormatError("it does not say what it was trained on")
    training = Fields(dict(facts.training))
    front, clip = training.text("front"), training.number("clip")
    if len(front) != DIGEST_DIGITS or not set(front) <= set("0123456789abcdef"):
        raise FormatError("its field 'front' is not a digest")
    if clip <= 0:
        raise FormatError("its field 'clip' is not a positive number")
    return TrainedHead(
        head, augmented, key_of(state[f"{TURN}.key_id"]), facts.class_names, front, clip,
        training.optional("mode", training.text), training.optional("resize", training.text),
    )  # fmt: skip
