"""Local paths and fsspec URLs under one interface, for sources that are files and folders."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from fsspec.implementations.local import LocalFileSystem

from mole.errors import SourceError
from mole.files.addresses import filesystem_of, reason_of

T = TypeVar("T")

# What file systems call a mark that changes with a file's content, best first.
MARKS = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "updated", "mtime", "created")


class FileMark(NamedTuple):
    """A file's size, and something that changes when its content does: its time, its ETag or its digest."""

    size: int
    mark: str

    @classmethod
    def of_content(cls, content: bytes) -> "FileMark":
        """The mark of a file that was read whole: this one nothing escapes."""
        return cls(len(content), hashlib.sha256(content).hexdigest())


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

    def files(self) -> dict[str, FileMark]:
        """All files below a folder, by full path, in a fixed order; hidden ones are left out."""
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

    def mark(self) -> FileMark:
        """The file's size and mark."""
        if self.is_local:
            return self._ask(lambda: _local_mark(Path(self.path)))
        return _remote_mark(self._ask(lambda: self.filesystem.info(self.path)))

    def _local_files(self) -> dict[str, FileMark]:
        paths = sorted(path.as_posix() for path in _walk(Path(self.path), frozenset()))
        return {path: _local_mark(Path(path)) for path in paths}

    def _remote_files(self) -> dict[str, FileMark]:
        found = sorted(self.filesystem.find(self.path, detail=True).items())
        return {path: _remote_mark(facts) for path, facts in found if not self._is_hidden(path)}

    def _is_hidden(self, path: str) -> bool:
        """Whether a file is a hidden one, or S3's mark of an empty folder."""
        return path.endswith("/") or any(part.startswith(".") for part in self.inside(path).split("/"))

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except Exception as error:  # every file system has errors of its own
            raise SourceError(f"{self.shown} can not be read: {reason_of(error)}") from None


def fingerprint(place: Place, files: Mapping[str, FileMark]) -> str:
    """A name for the files of a source: their names inside of it, sizes and marks; not where it lies."""
    lines = "\n".join(f"{size} {mark} {place.inside(path)}" for path, (size, mark) in files.items())
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


def _local_mark(path: Path) -> FileMark:
    """A file's size and time; nothing for a link that leads nowhere, which is reported when it is read."""
    if not path.exists():
        return FileMark(0, "")
    facts = path.stat()
    return FileMark(facts.st_size, str(facts.st_mtime_ns))


def _remote_mark(facts: Mapping[str, Any]) -> FileMark:
    mark = next((str(facts[name]) for name in MARKS if facts.get(name)), "")
    return FileMark(int(facts.get("size") or 0), mark)
