"""Where a delivery lies: a local folder, or one behind a URL, as named files.

    store = open_store("s3://bucket/delivery")
    store.write("manifest.json", b"{}")

Files appear complete or not at all: renamed when they are finished on a disk, as one object elsewhere.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from mole.errors import DeliveryError
from mole.storage.atomic import TEMPORARY, reason_of
from mole.storage.locations import Location, is_local, local_path

IGNORED = (".DS_Store", "Thumbs.db")  # what looking at a folder leaves in it


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

    def _file(self, name: str) -> Location:
        """Where a file lies; never outside the store, because names also come from others' manifests."""
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts:
            raise DeliveryError(f"{self.label} cannot hold a file named '{name}': use a name inside it")
        return self._place.child(f"{self._place.path}/{name}")


class LocalStore(FolderStore):
    """A folder on this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Location.of(str(folder), DeliveryError))
        self.folder = Path(self._place.path)


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
