"""The ledger: beside the key, an append-only record of what was delivered under it.

Every known pair and every further delivery weakens a key, so the provider should see what has left. The
ledger also keeps the names of samples that were left out, which have no place in the delivery.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mole.errors import DeliveryError
from mole.exchange.manifest import Manifest
from mole.storage.atomic import reason_of

SUFFIX = ".ledger"


@dataclass(frozen=True)
class Entry:
    """One delivery under a key.

    Attributes:
        date: when it was finished, in UTC.
        delivery_id, key_fingerprint, layer_fingerprint, rows: as in its manifest.
        skipped: names of the samples that were left out.
    """

    date: str
    delivery_id: str
    key_fingerprint: str
    layer_fingerprint: str
    rows: int
    skipped: tuple[str, ...] = ()


def ledger_path(key_path: Path) -> Path:
    """Where the ledger of a key lies.

    >>> ledger_path(Path("provider.key")).name
    'provider.key.ledger'
    """
    return key_path.with_name(key_path.name + SUFFIX)


def read_ledger(key_path: Path) -> list[Entry]:
    """What was delivered under keys of this name so far, oldest first."""
    path = ledger_path(key_path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_entry(json.loads(line)) for line in lines if line.strip()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DeliveryError(f"{path} cannot be read: {reason_of(error)}") from None
    except (ValueError, TypeError, KeyError):
        raise DeliveryError(f"{path} is damaged: restore it, or move it away to start a new one") from None


def _entry(content: dict[str, Any]) -> Entry:
    return Entry(**{**content, "skipped": tuple(content["skipped"])})


def record(key_path: Path, manifest: Manifest, skipped: Sequence[str] = ()) -> None:
    """Add a delivery to the ledger of its key, once."""
    if any(entry.delivery_id == manifest.delivery_id for entry in read_ledger(key_path)):
        return
    entry = Entry(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        delivery_id=manifest.delivery_id,
        key_fingerprint=manifest.key_fingerprint,
        layer_fingerprint=manifest.layer_fingerprint,
        rows=manifest.rows,
        skipped=tuple(skipped),
    )
    path = ledger_path(key_path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DeliveryError(f"{path} cannot be written: {reason_of(error)}") from None


def delivery_warnings(key_path: Path, key_fingerprint: str, layer_fingerprint: str) -> list[str]:
    """What the provider should know before it uses a key again."""
    used = [entry for entry in read_ledger(key_path) if entry.key_fingerprint == key_fingerprint]
    if all(entry.layer_fingerprint == layer_fingerprint for entry in used):
        return []
    return [
        "this key was used for another first layer before: two developers who compare what they got "
        "learn more than each alone; make a key for each"
    ]


def keygen_warnings(key_path: Path, layer_fingerprint: str) -> list[str]:
    """What the provider should know before it makes a key of this name, from the ledgers in its folder."""
    warnings = []
    earlier = read_ledger(key_path)
    if any(entry.layer_fingerprint != layer_fingerprint for entry in earlier):
        warnings.append(
            f"{ledger_path(key_path)} tells of an earlier key of this name, used for another first layer: "
            "give each developer's key a name of its own"
        )
    used = [
        path.name.removesuffix(SUFFIX)
        for path in sorted(key_path.parent.glob(f"*{SUFFIX}"))
        if layer_fingerprint in _layers_in(path)
    ]
    if used:
        warnings.append(
            f"data for this first layer was delivered under {' and '.join(used)} before: its developer "
            "needs that key for further data, and a new augmented layer for a new key"
        )
    return warnings


def _layers_in(ledger: Path) -> set[str]:
    """Which layers a ledger tells of; none if it is something else that is called a ledger."""
    try:
        entries = read_ledger(ledger.with_name(ledger.name.removesuffix(SUFFIX)))
    except DeliveryError:
        return set()
    return {entry.layer_fingerprint for entry in entries}
