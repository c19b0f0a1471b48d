"""Where a delivery lies: a local folder, or one behind a URL, as named files.

    store = open_store("s3://bucket/delivery")
    store.write("manifest.json", b"{}")

Files appear complete or not at all: renamed when they are finished on a disk, as one object elsewhere.
"""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from mole.errors import DeliveryError
from mole.foreign_text import shown
from mole.storage.atomic import TEMPORARY, reason_of
from mole.storage.locations import Location, is_local, local_path
from mole.storage.locks import LOCK, folder_lock, remote_lock

IGNORED = (".DS_Store", "Thumbs.db", LOCK)  # what looking at a folder leaves in it, and its lock


class Store(Protocol):
    """A place with named files."""

    label: str

    def names(self) -> set[str]:
        """Names of all finished files."""

    def read(self, name: str) -> bytes:
        """A file's bytes."""

    def open(self, name: str) -> IO[bytes]:
        """A file, opened for reading."""

    def write(self, name: str, content: bytes) -> None:
        """A new file, complete or not at all."""

    def make(self, name: str, write: Callable[[Path], None]) -> None:
        """A new file that a function writes to a path, complete or not at all."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def locked(self) -> AbstractContextManager[None]:
        """Be the only one to write there for a while; an error says who is at work."""


def open_store(path: str) -> Store:
    """The store that a path or URL names; it need not exist yet."""
    return LocalStore(local_path(path)) if is_local(path) else FolderStore(Location.of(path, DeliveryError))


class FolderStore:
    """A folder, on this machine or behind a URL.

    Others may write there too, so earlier listings are never relied on.
    """

    def __init__(self, place: Location) -> None:
        self.label = place.label.rstrip("/") or place.label
        self._place = replace(place, label=self.label)

    def names(self) -> set[str]:
        """Names of all finished files."""
        names = self._place.names()
        if "" in names:
            raise DeliveryError(f"{self.label} is a file, and a folder is needed here")
        return {
            name
            for name in names
            if PurePosixPath(name).name not in IGNORED
            and not any(part.endswith(TEMPORARY) for part in PurePosixPath(name).parts)
        }

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        return self._file(name).read()

    def open(self, name: str) -> IO[bytes]:
        """A file, opened for reading."""
        return self._file(name).open(refresh=True)

    def write(self, name: str, content: bytes) -> None:
        """A new file, complete or not at all."""
        self._file(name).write(content)

    def make(self, name: str, write: Callable[[Path], None]) -> None:
        """A new file that a function writes to a path, complete or not at all."""
        self._file(name).make(write)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        self._file(name).remove()

    def locked(self) -> AbstractContextManager[None]:
        """Be the only one to write there for a while; an error says who is at work."""
        return remote_lock(self._file(LOCK), self.label)

    def _file(self, name: str) -> Location:
        """Where a file lies; never outside the store, because names also come from others' manifests."""
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts:
            raise DeliveryError(
                f"{self.label} cannot hold a file named '{shown(name)}': use a name inside it"
            )
        return self._place.child(f"{self._place.path}/{name}")


class LocalStore(FolderStore):
    """A folder on this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Location.of(str(folder), DeliveryError))
        self.folder = Path(self._place.path)

    def locked(self) -> AbstractContextManager[None]:
        """Be the only one to write there for a while; an error says who is at work."""
        self.names()  # a file in the folder's place gets a sentence of its own
        return folder_lock(self.folder, self.label)


def digest_of(store: Store, name: str) -> tuple[str, int]:
    """SHA-256 and size of a file."""
    digest, size = hashlib.sha256(), 0
    try:
        with store.open(name) as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
    except DeliveryError:
        raise
    except Exception as error:  # every file system has errors of its own
        raise DeliveryError(f"{store.label}/{name} cannot be read: {reason_of(error)}") from None
    return digest.hexdigest(), size


def read_at_most(store: Store, name: str, most: int) -> bytes:
    """A file's bytes; an error if there are more of them than such a file can have."""
    try:
        with store.open(name) as file:
            content = file.read(most + 1)
    except DeliveryError:
        raise
    except Exception as error:  # every file system has errors of its own
        raise DeliveryError(f"{store.label}/{name} cannot be read: {reason_of(error)}") from None
    if len(content) > most:
        raise DeliveryError(
            f"{store.label}/{name} is longer than {most >> 20} MiB, which no such file is: "
            "ask its sender for another"
        )
    return content


@dataclass(frozen=True)
class StoredFile:
    """A file of a store that has no path here: it can be opened, and has a name for messages."""

    store: Store
    name: str

    def open(self, mode: str) -> IO[bytes]:
        """The file, opened for reading."""
        return self.store.open(self.name)

    def __str__(self) -> str:
        return f"{self.store.label}/{self.name}"


def stored_file(store: Store, name: str) -> Path | StoredFile:
    """A file of a store, by its path where it has one; no copy of it is made."""
    return store.folder / name if isinstance(store, LocalStore) else StoredFile(store, name)
