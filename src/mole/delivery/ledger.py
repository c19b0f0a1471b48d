"""The ledger: beside the key, an append-only record of what was delivered under it.

Every known pair and every further delivery weakens a key, so the provider should see what is out.
"""

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from mole.delivery.manifest import Manifest
from mole.errors import DeliveryError

SUFFIX = ".ledger"


@dataclass(frozen=True)
class Entry:
    """One delivery."""

    date: str
    delivery_id: str
    key_fingerprint: str
    layer_fingerprint: str
    rows: int


def ledger_path(key_path: Path) -> Path:
    """Where the ledger of a key lies.

    >>> ledger_path(Path("provider.key")).name
    'provider.key.ledger'
    """
    return key_path.with_name(key_path.name + SUFFIX)


def read_ledger(key_path: Path) -> list[Entry]:
    """What was delivered under a key so far, oldest first."""
    path = ledger_path(key_path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Entry(**json.loads(line)) for line in lines if line.strip()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DeliveryError(f"{path} can not be read: {error.strerror}") from None
    except (ValueError, TypeError):
        raise DeliveryError(f"{path} is damaged: restore it, or move it away to start a new one") from None


def record(key_path: Path, manifest: Manifest) -> None:
    """Add a delivery to the ledger of its key, once."""
    if any(entry.delivery_id == manifest.delivery_id for entry in read_ledger(key_path)):
        return
    entry = Entry(
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        delivery_id=manifest.delivery_id,
        key_fingerprint=manifest.key_fingerprint,
        layer_fingerprint=manifest.layer_fingerprint,
        rows=manifest.rows,
    )
    path = ledger_path(key_path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DeliveryError(f"{path} can not be written: {error.strerror}") from None


def warnings_for(key_path: Path, layer_fingerprint: str) -> list[str]:
    """What the provider should know before it uses a key again."""
    entries = read_ledger(key_path)
    others = {entry.layer_fingerprint for entry in entries} - {layer_fingerprint}
    warnings = []
    if others:
        warnings.append(
            "this key was used for another first layer before: two developers who compare what they got "
            "learn more than each alone; make a key for each"
        )
    return warnings
