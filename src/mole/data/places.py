"""Local paths and fsspec URLs under one interface, for sources that are files and folders."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from fsspec.implementations.local import LocalFileSystem

from mole.errors import SourceError
from mole.files.addresses import filesystem_of, reason_of

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A file or folder somewhere: a local path, or a URL such as s3://bucket/folder."""

    filesystem: Any
    path: str
    shown: str

    @classmethod
    def of(cls, path: str) -> "Place":
        """The place that a path or URL names."""
        return cls(*filesystem_of(path, SourceError), path)

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return isinstance(self.filesystem, LocalFileSystem)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rsplit("/", 1)[-1]

    def inside(self, path: str) -> str:
        """A full path on the same file system, as seen from this folder."""
        return path.removeprefix(self.path).lstrip("/")

    def child(self, path: str) -> "Place":
        """The place of a full path on the same file system."""
        return Place(self.filesystem, path, f"{self.shown.rstrip('/')}/{self.inside(path)}")

    def exists(self) -> bool:
        """Whether something is there, at this moment and not when its folder was last listed."""
        self._ask(self.filesystem.invalidate_cache)
        return bool(self._ask(lambda: self.filesystem.exists(self.path)))

    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return bool(self._ask(lambda: self.filesystem.isdir(self.path)))

    def files(self) -> dict[str, int]:
        """Sizes of all files below a folder, by full path, in a fixed order; hidden ones are left out."""
        return self._ask(self._local_files if self.is_local else self._remote_files)

    def open(self) -> IO[bytes]:
        """The file, opened for reading."""
        opened: IO[bytes] = self._ask(lambda: self.filesystem.open(self.path, "rb"))
        return opened

    def read(self) -> bytes:
        """The file's bytes."""
        return bytes(self._ask(lambda: self.filesystem.cat_file(self.path)))

    def start(self, length: int) -> bytes:
        """The file's first bytes."""
        return bytes(self._ask(lambda: self.filesystem.cat_file(self.path, start=0, end=length)))

    def size(self) -> int:
        """The file's size."""
        return int(self._ask(lambda: self.filesystem.size(self.path)) or 0)

    def _local_files(self) -> dict[str, int]:
        paths = sorted(path.as_posix() for path in _walk(Path(self.path), frozenset()))
        return {path: _size(Path(path)) for path in paths}

    def _remote_files(self) -> dict[str, int]:
        found = sorted(self.filesystem.find(self.path, detail=True).items())
        return {path: int(facts.get("size") or 0) for path, facts in found if not self._is_hidden(path)}

    def _is_hidden(self, path: str) -> bool:
        """Whether a file is a hidden one, or S3's mark of an empty folder."""
        return path.endswith("/") or any(part.startswith(".") for part in self.inside(path).split("/"))

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except Exception as error:  # every file system has errors of its own
            raise SourceError(f"{self.shown} can not be read: {reason_of(error)}") from None


def fingerprint(sizes: dict[str, int]) -> str:
    """A name for a set of files: their names and sizes. Content that changes in place goes unnoticed."""
    lines = "\n".join(f"{size} {path}" for path, size in sizes.items())
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def _walk(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Every file below a folder. Links are followed, which fsspec does not do, but never in circles."""
    real = folder.resolve()
    if real in above:
        return
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(entry, above | {real})
        else:
            yield entry


def _size(path: Path) -> int:
    """A file's size; 0 for a link that leads nowhere, which is reported when it is read."""
    return path.stat().st_size if path.exists() else 0
