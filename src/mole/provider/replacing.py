"""Be alone where a delivery is written, and let it take the place of another one.

    with alone_at("delivery", plan, key, replace=True) as (store, replaced): ...

On a disk the old one stays until the new one is complete: that one grows beside it, in a folder whose lock
is held from before anything is removed there until it has its place. Nothing but a delivery is replaced.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mole.errors import DeliveryError
from mole.exchange.delivery import UNFINISHED
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.foreign_text import shown
from mole.provider.keys import MorphKey
from mole.provider.place import OWN, SHARD, beside, holds_another
from mole.provider.plan import Plan
from mole.provider.sealing import delivery_store
from mole.storage.atomic import clear_stale, put_aside, reason_of
from mole.storage.locks import LOCK
from mole.storage.sealed import SUFFIX
from mole.storage.stores import LocalStore, Store, open_store


@contextmanager
def alone_at(
    out: str | os.PathLike[str] | Store, plan: Plan, key: MorphKey, *, replace: bool
) -> Iterator[tuple[Store, Path | None]]:
    """Where a delivery is written, kept from others, and the folder whose place it takes, if there is one.

    A finished delivery on a disk stays until the new one is complete; from elsewhere it is removed now. No
    matter who else is at work where this very delivery lies finished.

    Raises:
        DeliveryError: if somebody else writes there, or something that is not a delivery would be replaced.
    """
    there = open_store(os.fspath(out)) if isinstance(out, str | os.PathLike) else out
    if isinstance(there, LocalStore):
        _finish_replacing(there.folder)
    place, replaced, is_cleared = there, None, False
    if not replace:
        delivery_store(there, plan.recipients, key)  # refuses what it cannot add to
    elif _holds_another(there, plan, key):
        check_replaceable(there)
        is_cleared = True
        if isinstance(there, LocalStore) and _is_finished(there):
            place, replaced = LocalStore(beside(there.folder)), there.folder
    with ExitStack() as work:
        try:
            work.enter_context(place.locked())
        except DeliveryError:
            if not _is_finished(place) or _holds_another(place, plan, key):
                raise
        else:
            # What was finished here while nobody held the lock stays: whoever claims the place says so.
            is_kept = replaced is None and isinstance(place, LocalStore) and _is_finished(place)
            if is_cleared and not is_kept and _holds_another(place, plan, key):
                clear(place)
        yield delivery_store(place, plan.recipients, key), replaced


def lies_at(out: str | os.PathLike[str] | Store, plan: Plan, key: MorphKey) -> bool:
    """Whether this very delivery lies there, finished or not, or grows beside what lies there."""
    there = open_store(os.fspath(out)) if isinstance(out, str | os.PathLike) else out
    grown = [LocalStore(beside(there.folder))] if isinstance(there, LocalStore) else []
    return any(place.names() and not _holds_another(place, plan, key) for place in (there, *grown))


def put_in_place(folder: Path, plan: Plan, key: MorphKey) -> Store:
    """Let a finished delivery take the place of the one beside which it grew; where it lies then.

    Whatever stops it, one of the two lies there: the old one comes back if the new one does not arrive.
    """
    store, grown = LocalStore(folder), beside(folder)
    with store.locked():
        if grown.exists():
            try:
                clear_stale(folder)
                with put_aside(folder):
                    _move(grown, folder)
            except OSError as error:
                raise DeliveryError(f"{folder} cannot be replaced: {reason_of(error)}") from None
        elif _holds_another(store, plan, key):
            raise DeliveryError(f"{grown} was removed before it could replace {folder}: call again")
    return delivery_store(store, plan.recipients, key)


def clear(store: Store) -> None:
    """Remove a delivery from a place, the manifest first; never anything else."""
    check_replaceable(store)
    last = {UNFINISHED, UNFINISHED + SUFFIX}  # as long as it is there, the rest can be told to be ours
    for name in sorted(store.names(), key=lambda name: (name in last, not name.startswith(MANIFEST))):
        store.remove(name)


def check_replaceable(store: Store) -> None:
    """Refuse to replace anything but a delivery.

    Raises:
        DeliveryError: if something lies there that is not of a delivery.
    """
    names = store.names()
    plain = {name.removesuffix(SUFFIX) for name in names}
    others = [name for name in sorted(plain) if name not in OWN and not SHARD.fullmatch(name)]
    if others or not plain & {MANIFEST, UNFINISHED}:
        example = f", such as {shown(others[0])}" if others else ""
        raise DeliveryError(
            f"{store.label} holds something that is not a delivery{example}, and only a delivery is ever "
            "replaced: choose another place"
        )
    if MANIFEST in names:
        Manifest.read(store)  # one that is damaged, or somebody else's, is an error


def _finish_replacing(folder: Path) -> None:
    """Put a complete delivery in its place if a process was killed just after it had made room for it."""
    if folder.exists() or folder.is_symlink() or not beside(folder).is_dir():
        return
    grown = LocalStore(beside(folder))
    if not _is_finished(grown):
        return
    with grown.locked():
        if folder.exists() or not _is_finished(grown):
            return
        check_replaceable(grown)
        try:
            _move(grown.folder, folder)
        except OSError as error:
            raise DeliveryError(
                f"{grown.label} is complete, and cannot be moved to {folder}: {reason_of(error)}"
            ) from None


def _move(grown: Path, folder: Path) -> None:
    """Rename a folder whose lock is held; the lock's file, which comes along, is no part of a delivery."""
    grown.rename(folder)
    (folder / LOCK).unlink(missing_ok=True)


def _is_finished(store: Store) -> bool:
    return bool(store.names() & {MANIFEST, MANIFEST + SUFFIX})


def _holds_another(place: Store, plan: Plan, key: MorphKey) -> bool:
    """Whether something else than this delivery lies there, or what cannot be told to be it."""
    try:
        return holds_another(delivery_store(place, plan.recipients, key), plan)
    except DeliveryError:
        return True
