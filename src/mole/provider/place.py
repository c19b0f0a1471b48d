"""The place of a delivery: free, taken by this very delivery, or by another; and what is left there.

What an unfinished delivery is made from is pinned in `unfinished.json`: a keyed digest of everything, so
that it resumes only as what it began as, and its parts, so that a refusal can say which of them differ.
"""

import json
import os
import re
from collections.abc import Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

from mole.errors import DeliveryError
from mole.exchange.card import NAME as CARD
from mole.exchange.delivery import AUGMENTED, UNFINISHED, Delivery
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.exchange.probes import NAME as PROBES
from mole.exchange.shards import SCALES
from mole.exchange.signatures import SIGNATURE
from mole.limits import MAX_JSON_BYTES
from mole.provider.plan import Plan
from mole.quantities import counted, joined, size_text
from mole.storage.sealed import SUFFIX, SealedStore
from mole.storage.stores import LocalStore, Store, open_store, read_at_most
from mole.storage.typed_json import FormatError, parse_json

WORDS = {
    "key": "another key",
    "layer": "another first layer",
    "data": "other data",
    "samples": "other data",
    "keep": "other columns",
    "recipients": "other recipients",
    "views": "another number of views",
}
KEYED = "data"  # a digest under the key: another key gives another one of the same data
EXAMPLES = 2
UNKNOWN = "another key, first layer, data or option"
OWN = {MANIFEST, SIGNATURE, UNFINISHED, AUGMENTED, SCALES, PROBES, CARD}
SHARD = re.compile(r"data/.+-\d{5,}-of-\d{5,}\.parquet")


def claim(store: Store, plan: Plan, *, thoroughly: bool = False) -> bool:
    """Take the place for this delivery; whether it lies there finished already.

    Args:
        store: the place.
        plan: what is to be made.
        thoroughly: read all files of a finished one, to see that they are as they were made.

    Raises:
        DeliveryError: if something else lies there, with what differs where it is another delivery; or if
            the finished one lacks files, or some are damaged.
    """
    names = store.names()
    if MANIFEST in names:
        manifest = Manifest.read(store)
        if manifest.delivery_id != plan.delivery_id:
            raise _taken(store, "another delivery already", differences(plan.parts, parts_of(manifest)))
        _refuse_damaged(store, manifest, thoroughly=thoroughly)
        if UNFINISHED in names:
            store.remove(UNFINISHED)
        return True
    if UNFINISHED in names:
        found = _pinned(store)
        if found.get("delivery_id") != plan.delivery_id:
            parts = found.get("parts")
            differ = differences(plan.parts, parts) if isinstance(parts, dict) else [UNKNOWN]
            raise _taken(store, "an unfinished delivery", differ)
        return False
    if names:
        raise _not_empty(store.label, names)
    pinned = {"delivery_id": plan.delivery_id, "parts": dict(plan.parts)}
    store.write(UNFINISHED, json.dumps(pinned).encode())
    return False


def refuse_taken(out: str | os.PathLike[str] | Store, parts: Mapping[str, Any]) -> None:
    """Refuse a place that holds something else, as far as that shows before the key is there.

    Args:
        out: the place.
        parts: what the delivery is made from, as far as it is known yet.
    """
    store = open_store(os.fspath(out)) if isinstance(out, str | os.PathLike) else out
    if isinstance(store, SealedStore):
        return
    try:
        names = store.names()
    except DeliveryError as error:
        if isinstance(store, LocalStore) or not error.is_missing:
            raise
        raise DeliveryError(
            f"{store.label} cannot be written: there is no such bucket, so make it, or correct the name"
        ) from None
    if MANIFEST in names:
        differ = differences(parts, {name: parts_of(Manifest.read(store)).get(name) for name in parts})
        if differ:
            raise _taken(store, "another delivery already", differ)
    elif names and not names & {UNFINISHED, UNFINISHED + SUFFIX, MANIFEST + SUFFIX}:
        raise _not_empty(store.label, names)


def parts_of(manifest: Manifest) -> dict[str, Any]:
    """What a finished delivery says that it is made from."""
    return {
        "key": manifest.key_fingerprint,
        "layer": manifest.layer_fingerprint,
        "dtype": manifest.dtype,
        "mode": manifest.mode,
        "resize": manifest.resize,
        "keep": list(manifest.columns),
        "samples": {name: split.samples for name, split in manifest.splits.items()},
        "views": max(split.views for split in manifest.splits.values()),
    }


def differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """What is not the same, in words, among what is known of both.

    >>> differences({"key": "a", "dtype": "int8", "mode": "L"}, {"key": "b", "dtype": "float32"})
    ['another key', 'another dtype']
    """
    is_same_key = here.get("key") == there.get("key")
    differ = [
        WORDS.get(name, f"another {name}")
        for name in here
        if name in there and here[name] != there[name] and (is_same_key or name != KEYED)
    ]
    return list(dict.fromkeys(differ))


def holds_another(store: Store, plan: Plan) -> bool:
    """Whether something else than this delivery lies there."""
    names = store.names()
    if MANIFEST in names:
        return Manifest.read(store).delivery_id != plan.delivery_id
    return bool(names) and _pinned(store).get("delivery_id") != plan.delivery_id


def beside(folder: Path) -> Path:
    """Where a delivery grows that is to take the place of another one."""
    return folder.with_name(f".{folder.name}.new")


def give_up_if_nothing_is_lost(store: Store) -> None:
    """After a failure before the first shard, leave the place as it was, free for another try."""
    with suppress(DeliveryError, OSError):
        names = store.names()
        if MANIFEST in names or any(name.startswith("data/") for name in names):
            return
        for name in names:
            store.remove(name)
        if isinstance(store, SealedStore):
            store = store.inner
        if isinstance(store, LocalStore) and (store.folder / "data").exists():
            (store.folder / "data").rmdir()


def what_is_left(out: str, *, replacing: bool = False) -> str:
    """What lies in a place after an interruption, and how to go on: half a sentence.

    Args:
        out: the place.
        replacing: whether something that lay there before was to be replaced.
    """
    with suppress(DeliveryError, OSError):
        store = open_store(out)
        grown = beside(store.folder) if isinstance(store, LocalStore) else None
        for place in (LocalStore(grown), store) if grown is not None and grown.exists() else (store,):
            names = place.names()
            if names & {UNFINISHED, UNFINISHED + SUFFIX}:
                shards = [name for name in names if SHARD.fullmatch(name.removesuffix(SUFFIX))]
                size = f", {size_text(_bytes(place, shards))}" if isinstance(place, LocalStore) else ""
                done = counted(len(shards), "finished data file")
                return f"{place.label} holds {done}{size}; the same call resumes"
            if names & {MANIFEST, MANIFEST + SUFFIX}:
                which = ", and may be the one from before" if replacing else ""
                return f"the delivery in {place.label} is complete{which}"
        return "nothing was written; call again to start over"
    return "the same call resumes"


def _bytes(store: LocalStore, names: list[str]) -> int:
    return sum((store.folder / name).stat().st_size for name in names)


def _pinned(store: Store) -> dict[str, Any]:
    try:
        found = parse_json(read_at_most(store, UNFINISHED, MAX_JSON_BYTES))
        return {name: found.value(name) for name in found.names()}
    except FormatError:
        return {}


def _refuse_damaged(store: Store, manifest: Manifest, *, thoroughly: bool) -> None:
    names = store.names()
    missing = [name for name in manifest.files if name not in names]
    damaged = [] if missing or not thoroughly else Delivery(store, manifest).damaged()
    if missing or damaged:
        shown = joined((missing or damaged)[:EXAMPLES])
        more = f" and {others:,} more" if (others := len(missing or damaged) - EXAMPLES) > 0 else ""
        raise DeliveryError(
            f"{store.label} holds this delivery, but {shown}{more} "
            f"{'no longer exists' if missing else 'is damaged'}: get it back from a copy, or remove the "
            "whole delivery and call again"
        )


def _taken(store: Store, what: str, differ: list[str]) -> DeliveryError:
    made_with = joined(differ) if differ else "other data or another option"
    again = "to finish it, repeat the call that began it; otherwise " if what.startswith("an ") else ""
    return DeliveryError(
        f"{store.label} holds {what}, made with {made_with}: {again}choose another place, or replace it",
        advice={"replace": True},
    )


def _not_empty(label: str, names: Set[str]) -> DeliveryError:
    if names & {MANIFEST + SUFFIX, UNFINISHED + SUFFIX}:
        return DeliveryError(
            f"{label} holds a sealed delivery, finished or not: to finish it, repeat the call that began "
            "it; otherwise choose another place, or replace it",
            advice={"replace": True},
        )
    return DeliveryError(f"{label} is not empty: choose another place")
