"""The ledger: an append-only record of what was delivered under a key.

    ledger = Ledger(key.fingerprint, key.path)
    ledger.entries()

Every known pair and every further delivery weakens a key, so the provider should see what has left. It is
kept twice: beside the key's file, where it travels with it, and in the user's own folder by the key's
fingerprint, where a copy of the key finds it too. What either of the two tells counts. It also keeps the
names of samples that were left out, which have no place in the delivery.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mole.errors import DeliveryError, ParameterError
from mole.exchange.manifest import Manifest
from mole.quantities import joined
from mole.storage.atomic import reason_of
from mole.storage.locations import is_local, local_path
from mole.url_secrets import without_secrets

SUFFIX = ".ledger"
STATE = "MOLE_STATE"
FINGERPRINT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Entry:
    """One delivery under a key, in one place where it was written.

    Attributes:
        date: when it was finished, in UTC.
        delivery_id, key_fingerprint, layer_fingerprint, rows: as in its manifest.
        skipped: names of the samples that were left out.
        resize: how images were brought to size; None where they were not, or in entries before version 0.7.
        bits: what a row of a protected delivery tells at most; None for others.
        place: where it was written, without passwords and tokens; None in older entries.
        sealed_for: the age recipients who can open it, () where it is not sealed; None where that is not
            known, as in older entries.
    """

    date: str
    delivery_id: str
    key_fingerprint: str
    layer_fingerprint: str
    rows: int
    skipped: tuple[str, ...] = ()
    resize: str | None = None
    bits: float | None = None
    place: str | None = None
    sealed_for: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Ledger:
    """What was delivered under one key.

    Attributes:
        fingerprint: the key's.
        key_path: the key's file, if it has one.
    """

    fingerprint: str
    key_path: Path | None = None

    def __post_init__(self) -> None:
        if not FINGERPRINT.fullmatch(self.fingerprint):
            raise ParameterError("a key's fingerprint is 32 hexadecimal digits")

    def paths(self) -> list[Path]:
        """Where it lies: in the user's folder, and beside the key."""
        beside = [] if self.key_path is None else [ledger_path(self.key_path)]
        folder = state_folder()
        return beside if folder is None else [folder / "ledgers" / (self.fingerprint + SUFFIX), *beside]

    def beside(self, suffix: str, why: str) -> tuple[Path, ...]:
        """Files of another kind in the same places.

        Args:
            suffix: how their names end.
            why: what they are needed for, to say where there is no place for them.

        Raises:
            DeliveryError: if there is none.
        """
        paths = tuple(path.with_suffix(suffix) for path in self.paths())
        if not paths:
            raise DeliveryError(f"{why}, and there is no folder for that: set {STATE} to one")
        return paths

    def entries(self) -> list[Entry]:
        """Every delivery under this key, once for each place where it was written, oldest first."""
        found = [entry for path in self.paths() for entry in _read(path)]
        ours = {
            (entry.delivery_id, entry.place): entry
            for entry in found
            if entry.key_fingerprint == self.fingerprint
        }
        return sorted(ours.values(), key=lambda entry: entry.date)

    def delivery_ids(self) -> set[str]:
        """Of everything in its files, under whatever key: another one may have lain beside them."""
        return {entry.delivery_id for path in self.paths() for entry in _read(path)}

    def deliveries(self) -> list[Entry]:
        """Every delivery under this key once, as it was first written: copies hold the same rows."""
        first: dict[str, Entry] = {}
        for entry in self.entries():
            first.setdefault(entry.delivery_id, entry)
        return list(first.values())

    def other_layers(self, layer_fingerprint: str) -> list[Entry]:
        """What was delivered for other first layers, if this one would be new to the key."""
        entries = self.entries()
        if any(entry.layer_fingerprint == layer_fingerprint for entry in entries):
            return []
        return entries

    def other_resize(self, layer_fingerprint: str, resize: str | None) -> str | None:
        """How images for a first layer were brought to size before, if that is another way than now."""
        ways = [entry.resize for entry in self.entries() if entry.layer_fingerprint == layer_fingerprint]
        others = [way for way in ways if way is not None]
        return others[-1] if resize is not None and others and resize not in others else None

    def replaced_key(self) -> str | None:
        """The fingerprint that the ledger beside the key saw last, if it is another key's."""
        entries = [] if self.key_path is None else read_ledger(self.key_path)
        last = entries[-1].key_fingerprint if entries else self.fingerprint
        return None if last == self.fingerprint else last

    def record(
        self,
        manifest: Manifest,
        skipped: Sequence[str] = (),
        *,
        place: str | None = None,
        sealed_for: Sequence[str] | None = None,
        was_complete: bool = False,
    ) -> list[str]:
        """Add a delivery, once for each place; a sentence about each ledger that cannot be written.

        Args:
            manifest: of the delivery.
            skipped: names of samples that were left out.
            place: where it was written: a path or a URL.
            sealed_for: the age recipients who can open it, () where it is not sealed; None if not known.
            was_complete: whether it was found there finished. An older entry, which does not know its
                place, may then be of this one.

        Raises:
            DeliveryError: if it could be written nowhere.
        """
        entry = Entry(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            delivery_id=manifest.delivery_id,
            key_fingerprint=manifest.key_fingerprint,
            layer_fingerprint=manifest.layer_fingerprint,
            rows=manifest.rows,
            skipped=tuple(skipped),
            resize=manifest.resize,
            bits=None if manifest.protection is None else manifest.protection.most_bits,
            place=None if place is None else _written_at(place),
            sealed_for=None if sealed_for is None else tuple(sealed_for),
        )
        places = (entry.place, None) if was_complete else (entry.place,)
        failures = []
        paths = self.paths()
        for path in paths:
            try:
                known = [one.place for one in _read(path) if one.delivery_id == entry.delivery_id]
                if not any(one in places for one in known):
                    _append(path, entry)
            except OSError as error:
                failures.append(f"{path} cannot be written: {reason_of(error)}")
        if len(failures) == len(paths):
            where = failures[0] if failures else f"there is no folder for it: set {STATE} to one"
            raise DeliveryError(f"the delivery is made, but no ledger records it: {where}")
        return failures


def state_folder() -> Path | None:
    """The user's folder for what is remembered of keys; None for a user without a home.

    MOLE_STATE names another one; otherwise it is `mole` in XDG_STATE_HOME, or in ~/.local/state.
    """
    if named := os.environ.get(STATE):
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "mole"
    try:
        return Path.home() / ".local" / "state" / "mole"
    except RuntimeError:
        return None


def ledger_path(key_path: Path) -> Path:
    """Where the ledger beside a key lies.

    >>> ledger_path(Path("provider.key")).name
    'provider.key.ledger'
    """
    return key_path.with_name(key_path.name + SUFFIX)


def read_ledger(key_path: Path) -> list[Entry]:
    """What the ledger beside a key tells of keys of this name, oldest first."""
    return _read(ledger_path(key_path))


def _written_at(place: str) -> str:
    """A place in one spelling, so that it is known again: the real path, or a URL without its secrets.

    >>> _written_at("ftp://me:secret@host/photos/"), _written_at("/data/./photos/")
    ('ftp://me@host/photos', '/data/photos')
    """
    return str(local_path(place).resolve()) if is_local(place) else without_secrets(place).rstrip("/")


def _read(path: Path) -> list[Entry]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_entry(json.loads(line)) for line in lines if line.strip()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        remedy = f": make it readable, or set {STATE} to another folder"
        raise DeliveryError(f"{path} cannot be read: {reason_of(error)}{remedy}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DeliveryError(f"{path} is damaged: restore it, or move it away to start a new one") from None


def _entry(content: Any) -> Entry:
    if not isinstance(content, dict):
        raise TypeError("an entry of another kind")
    lists = {name: tuple(content[name]) for name in ("skipped", "sealed_for") if name in content}
    entry = Entry(**{**content, **lists})
    texts = (entry.date, entry.delivery_id, entry.key_fingerprint, entry.layer_fingerprint)
    known = [text for text in (entry.resize, entry.place) if text is not None]
    named = (*entry.skipped, *(entry.sealed_for or ()))
    are_texts = all(isinstance(text, str) for text in (*texts, *known, *named))
    if not are_texts or type(entry.rows) is not int or not isinstance(entry.bits, float | None):
        raise ValueError("an entry of another kind")
    return entry


def _append(path: Path, entry: Entry) -> None:
    """Add a line that only the owner can read, in a folder that is made if it is the user's own."""
    state = state_folder()
    if state is not None and path.is_relative_to(state):
        for folder in (state, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as file:
        known = {name: value for name, value in asdict(entry).items() if value is not None}
        file.write(json.dumps(known) + "\n")
        file.flush()
        os.fsync(file.fileno())


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
            f"data for this first layer was delivered under {joined(used)} before: its developer needs "
            f"{'that key' if len(used) == 1 else 'one of those keys'} for further data, and a new "
            "augmented layer for a new key"
        )
    return warnings


def _layers_in(ledger: Path) -> set[str]:
    """Which layers a ledger tells of; none if it is something else that is called a ledger."""
    try:
        entries = read_ledger(ledger.with_name(ledger.name.removesuffix(SUFFIX)))
    except DeliveryError:
        return set()
    return {entry.layer_fingerprint for entry in entries}
