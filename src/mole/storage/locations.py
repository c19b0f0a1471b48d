"""Local paths and fsspec URLs under one interface, for sources that are files and folders."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from mole.errors import FileError, MissingExtraError, SourceError
from mole.storage.atomic import TEMPORARY

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
class Location:
    """A file or folder somewhere: a local path, or a URL such as s3://bucket/folder."""

    filesystem: Any
    path: str
    label: str

    @classmethod
    def of(cls, path: str) -> "Location":
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

    def child(self, path: str) -> "Location":
        """The place of a full path on the same file system."""
        return Location(self.filesystem, path, f"{self.label.rstrip('/')}/{self.inside(path)}")

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
            raise SourceError(f"{self.label} cannot be read: {reason_of(error)}") from None


def fingerprint(place: Location, files: Mapping[str, FileMark]) -> str:
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


def is_local(path: str) -> bool:
    """Whether a path or URL names something on this machine.

    >>> is_local("photos"), is_local("file:///photos"), is_local("s3://bucket/photos")
    (True, True, False)
    """
    return "://" not in path or path.startswith("file://")


def local_path(path: str) -> Path:
    """The path that a local path or file:// URL names."""
    return Path(path.removeprefix("file://"))


def filesystem_of(path: str, error: type[FileError]) -> tuple[Any, str]:
    """The file system that a path or URL names, and the path on it.

    Raises:
        MissingExtraError: if the file system's package is not installed.
        FileError: of the given type, for all else.
    """
    if is_local(path):  # not left to fsspec, which takes '::' in a file's name for a chain of URLs
        return LocalFileSystem(), local_path(path).expanduser().absolute().as_posix()
    try:
        filesystem, inner = fsspec.core.url_to_fs(path)
    except ImportError as missing:
        is_s3 = path.startswith(("s3://", "s3a://"))
        help_ = "pip install 'morphed-learning[s3]'" if is_s3 else reason_of(missing)
        raise MissingExtraError(f"{path} needs another package: {help_}") from None
    except Exception as refusal:  # every file system has errors of its own
        raise error(f"{path} cannot be opened: {reason_of(refusal)}") from None
    return filesystem, inner.rstrip("/") or inner


def reason_of(error: Exception) -> str:
    """Why something was refused, in one line.

    >>> reason_of(PermissionError(13, "Permission denied"))
    'Permission denied'
    >>> reason_of(FileNotFoundError("bucket/name"))
    'it is not there'
    >>> reason_of(OSError(28, "writing .model.safetensors.1f2e3d4c.part failed"))
    'No space left on device'
    """
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, FileError):
        said = said.rpartition(" cannot be written: ")[2]  # of a file beside, whose name nobody knows
    elif isinstance(error, OSError) and error.errno and TEMPORARY in said:
        said = os.strerror(error.errno)
    if isinstance(error, FileNotFoundError) and not error.strerror:
        said = "it is not there"
    return " ".join(said.split()).rstrip(".") or type(error).__name__
