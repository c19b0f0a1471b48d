"""Where a delivery lies: a local folder, or one behind an fsspec URL.

Files appear complete or not at all: beside and renamed on a disk, as one object elsewhere.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol, TypeVar

from mole.errors import DeliveryError
from mole.storage.atomic import TEMPORARY, clear_stale, new_file
from mole.storage.locations import filesystem_of, is_local, local_path, reason_of

T = TypeVar("T")
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
        """Take a file away, if it is there."""


def open_store(path: str) -> Store:
    """The store that a path or URL names; it need not exist yet."""
    if is_local(path):
        return LocalStore(local_path(path))
    filesystem, inner = filesystem_of(path, DeliveryError)
    return RemoteStore(filesystem, inner, path.rstrip("/"))


def digest_of(store: Store, name: str) -> tuple[str, int]:
    """SHA-256 and size of a file."""
    digest, size = hashlib.sha256(), 0
    with store.open(name) as file:
        while block := _ask(f"{store.label}/{name}", "read", lambda: file.read(1 << 20)):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


@contextmanager
def local_copy(store: Store, name: str) -> Iterator[Path]:
    """A path under which a file of the store can be read."""
    if isinstance(store, LocalStore):
        yield store.folder / name
        return
    with tempfile.TemporaryDirectory(prefix="mole-") as scratch:
        path = Path(scratch) / name
        path.write_bytes(store.read(name))
        yield path


class LocalStore:
    """A folder on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.label = str(folder)

    def names(self) -> set[str]:
        """Names of all finished files."""
        if not self.folder.exists():
            return set()
        if not self.folder.is_dir():
            raise DeliveryError(f"{self.folder} is a file, and a folder is needed here")
        found = _ask(self.label, "listed", lambda: [p for p in self.folder.rglob("*") if p.is_file()])
        names = (path.relative_to(self.folder) for path in found)
        return {
            name.as_posix()
            for name in names
            if name.name not in IGNORED and not any(part.endswith(TEMPORARY) for part in name.parts)
        }

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        path = self._path(name)
        return _ask(path, "read", path.read_bytes)

    def open(self, name: str) -> IO[bytes]:
        """A file, opened for reading."""
        path = self._path(name)
        return _ask(path, "read", lambda: path.open("rb"))

    def write(self, name: str, content: bytes) -> None:
        """A new file, complete or not at all."""

        def write(path: Path) -> None:
            path.write_bytes(content)

        self.make(name, write)

    def make(self, name: str, write: Callable[[Path], None]) -> None:
        """A new file that a function writes to a path, complete or not at all."""
        path = self._path(name)

        def make() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            clear_stale(path)
            with new_file(path) as temporary:
                write(temporary)

        _ask(path, "written", make)

    def remove(self, name: str) -> None:
        """Take a file away, if it is there."""
        path = self._path(name)
        _ask(path, "removed", lambda: path.unlink(missing_ok=True))

    def _path(self, name: str) -> Path:
        return self.folder / _checked(name, self.label)


class RemoteStore:
    """A folder behind an fsspec file system, such as S3.

    Others write there too, so what fsspec remembers of earlier listings is never relied on.
    """

    def __init__(self, filesystem: Any, folder: str, label: str) -> None:
        self.filesystem = filesystem
        self.folder = folder
        self.label = label

    def names(self) -> set[str]:
        """Names of all finished files."""

        def find() -> list[str]:
            self.filesystem.invalidate_cache()
            found = self.filesystem.find(self.folder)
            files = [path for path in found if not path.endswith("/")]  # S3's marks of empty folders
            return [path for path in files if PurePosixPath(path).name not in IGNORED]

        names = {path.removeprefix(self.folder).lstrip("/") for path in _ask(self.label, "listed", find)}
        if "" in names:
            raise DeliveryError(f"{self.label} is a file, and a folder is needed here")
        return names

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        return bytes(self._do("read", name, self.filesystem.cat_file))

    def open(self, name: str) -> IO[bytes]:
        """A file, opened for reading."""

        def open_(path: str) -> IO[bytes]:
            self.filesystem.invalidate_cache()
            opened: IO[bytes] = self.filesystem.open(path, "rb")
            return opened

        return self._do("read", name, open_)

    def write(self, name: str, content: bytes) -> None:
        """A new file, complete or not at all."""
        self._do("written", name, lambda path: self.filesystem.pipe_file(path, content))

    def make(self, name: str, write: Callable[[Path], None]) -> None:
        """A new file that a function writes to a path, complete or not at all."""

        def make(target: str) -> None:
            with tempfile.TemporaryDirectory(prefix="mole-") as scratch:
                path = Path(scratch) / PurePosixPath(name).name
                write(path)
                self.filesystem.put_file(str(path), target)

        self._do("written", name, make)

    def remove(self, name: str) -> None:
        """Take a file away, if it is there."""

        def remove(path: str) -> None:
            with suppress(FileNotFoundError):
                self.filesystem.rm_file(path)

        self._do("removed", name, remove)

    def _do(self, verb: str, name: str, action: Callable[[str], T]) -> T:
        path = f"{self.folder}/{_checked(name, self.label)}"
        return _ask(f"{self.label}/{name}", verb, lambda: action(path))


def _ask(label: str | Path, verb: str, question: Callable[[], T]) -> T:
    """What a file system answers, or one sentence about why it does not."""
    try:
        return question()
    except Exception as error:  # every file system has errors of its own
        raise DeliveryError(f"{label} cannot be {verb}: {reason_of(error)}") from None


def _checked(name: str, label: str) -> str:
    """The same name, unless it leads out of the store: names also come from other people's manifests."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise DeliveryError(f"{label} cannot hold a file named '{name}': use a name inside of it")
    return name
