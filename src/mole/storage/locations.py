"""Local paths and URLs under one interface, for everything that is files and folders.

photos = Location.of("s3://bucket/photos")
for path in photos.files():
    photos.child(path).read()
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from mole.errors import FileError, MissingExtraError, SourceError
from mole.storage.atomic import new_file, private_folder, reason_of
from mole.storage.regular import open_regular, read_regular

T = TypeVar("T")

# What file systems call a mark that changes with a file's content, best first.
MARKS = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "updated", "mtime", "created")


def is_local(path: str) -> bool:
    """Whether a path or URL names something on this machine.

    >>> is_local("photos"), is_local("file:///photos"), is_local("s3://bucket/photos")
    (True, True, False)
    """
    return "://" not in path or path.startswith("file://")


def local_path(path: str) -> Path:
    """The path that a local path or file:// URL names; '~' at its start is the user's home."""
    local = Path(path.removeprefix("file://"))
    with suppress(RuntimeError):  # '~nobody', who has none
        return local.expanduser() if path.startswith("~") else local
    return local


def absolute(path: str | os.PathLike[str]) -> str:
    """A path that means the same in every process on this machine; a URL as it is."""
    named = os.fspath(path)
    return str(local_path(named).absolute()) if is_local(named) else named


class FileMark(NamedTuple):
    """A file's size, and something that changes when its content does: its time, its ETag or its digest."""

    size: int
    mark: str

    @classmethod
    def of_content(cls, content: bytes) -> "FileMark":
        """The mark of a file that was read whole, which no change escapes."""
        return cls(len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class Location:
    """A file or folder somewhere: a local path, or a URL such as s3://bucket/folder.

    Attributes:
        filesystem: fsspec's.
        path: the full path on it.
        label: how the user named it, for messages.
        error: what is raised, in one sentence, when the file system refuses something.
    """

    filesystem: Any
    path: str
    label: str
    error: type[FileError] = SourceError

    @classmethod
    def of(cls, path: str, error: type[FileError] = SourceError) -> "Location":
        """The location that a path or URL names; it need not exist.

        Raises:
            MissingExtraError: if the file system's package is not installed.
        """
        if is_local(path):  # not left to fsspec, which takes '::' in a file's name for a chain of URLs
            return cls(LocalFileSystem(), local_path(path).absolute().as_posix(), path, error)
        try:
            filesystem, inner = fsspec.core.url_to_fs(path)
        except ImportError as missing:
            if path.startswith(("s3://", "s3a://")):
                raise MissingExtraError(f"{path} needs another package", "s3") from None
            raise MissingExtraError(f"{path} needs another package: {reason_of(missing)}") from None
        except Exception as refusal:  # every file system has errors of its own
            raise error(f"{path} cannot be opened: {reason_of(refusal)}") from None
        return cls(filesystem, inner.rstrip("/") or inner, path, error)

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
        """The location of a full path on the same file system."""
        return replace(self, path=path, label=f"{self.label.rstrip('/')}/{self.inside(path)}")

    def look(self) -> Literal["file", "folder"] | None:
        """What is there at this moment; None for nothing."""
        if not self.exists():
            return None
        return "folder" if self.is_folder() else "file"

    def exists(self) -> bool:
        """Whether something is there, at this moment and not when its folder was last listed."""
        self._refresh()
        return bool(self._ask("read", lambda: self.filesystem.exists(self.path)))

    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return bool(self._ask("read", lambda: self.filesystem.isdir(self.path)))

    def files(self) -> dict[str, FileMark]:
        """All files below a folder, by full path, in a fixed order; hidden ones are left out."""
        return self._ask("read", self._local_files if self.is_local else self._remote_files)

    def names(self) -> set[str]:
        """Names of all files inside a folder, hidden or not, at this moment.

        There are none where nothing is; a file holds just the empty name.
        """
        self._refresh()
        listed = self._local_paths if self.is_local else self._found
        return set(map(self.inside, self._ask("listed", listed)))

    def open(self, *, refresh: bool = False) -> IO[bytes]:
        """The file, opened for reading; where others write too, without relying on earlier listings."""
        if refresh:
            self._refresh()
        if self.is_local:  # the file itself, not one that fsspec has wrapped
            return self._ask("read", lambda: open_regular(self.path))
        opened: IO[bytes] = self._ask("read", lambda: self.filesystem.open(self.path, "rb"))
        return opened

    def read(self) -> bytes:
        """The file's bytes."""
        return self.start(None)

    def read_at_most(self, most: int) -> bytes:
        """The file's bytes; an error if there are more of them than such a file can have."""
        content = self.read() if self.is_local and self.mark().size <= most else self.start(most + 1)
        if len(content) > most:
            raise self.error(f"{self.label} is larger than {most >> 20} MiB, which no such file is")
        return content

    def read_whole(self) -> tuple[bytes, str]:
        """The file's bytes, and a fingerprint of a source that is just this file."""
        content = self.read()
        return content, fingerprint(self, {self.path: FileMark.of_content(content)})

    def start(self, length: int | None) -> bytes:
        """The file's first bytes; None for all of them."""
        if self.is_local:
            return self._ask("read", lambda: read_regular(self.path, length))
        return bytes(self._ask("read", lambda: self.filesystem.cat_file(self.path, start=0, end=length)))

    def mark(self) -> FileMark:
        """The file's size and mark."""
        if self.is_local:
            return self._ask("read", lambda: _local_mark(Path(self.path)))
        return _remote_mark(self._ask("read", lambda: self.filesystem.info(self.path)))

    def make(self, write: Callable[[Path], object]) -> None:
        """A new file that a function writes to a path, complete or not at all."""
        self._ask("written", lambda: self._rename(write) if self.is_local else self._upload(write))

    def write(self, content: bytes) -> None:
        """A new file with this content, complete or not at all."""
        if self.is_local:
            self.make(lambda path: path.write_bytes(content))
        else:
            self._ask("written", lambda: self.filesystem.pipe_file(self.path, content))

    def create(self, content: bytes) -> bool:
        """A new file with this content, unless one is there: then False.

        It is looked at first, because some file systems ignore the condition, and others refuse it.
        """
        if self.exists():
            return False
        with suppress(self.error):
            return self._ask("written", lambda: self._create(content))
        if self.exists():
            return False
        self.write(content)
        return True

    def _create(self, content: bytes) -> bool:
        try:
            self.filesystem.pipe_file(self.path, content, mode="create")
        except FileExistsError:
            return False
        return True

    def remove(self) -> None:
        """Remove the file, if it is there."""

        def remove() -> None:
            with suppress(FileNotFoundError):
                self.filesystem.rm_file(self.path)

        self._ask("removed", remove)

    def _rename(self, write: Callable[[Path], object]) -> None:
        path = Path(self.path)
        private_folder(path.parent)
        with new_file(path) as temporary:
            write(temporary)

    def _upload(self, write: Callable[[Path], object]) -> None:
        with tempfile.TemporaryDirectory(prefix="mole-") as scratch:
            path = Path(scratch) / self.name
            write(path)
            self.filesystem.put_file(str(path), self.path)

    def _refresh(self) -> None:
        """Forget what earlier listings said."""
        self._ask("read", self.filesystem.invalidate_cache)

    def _local_paths(self) -> list[str]:
        path = Path(self.path)
        return [file.as_posix() for file in (path, *path.rglob("*")) if file.is_file()]

    def _found(self) -> dict[str, Any]:
        """Facts about everything that fsspec finds, but for S3's markers of empty folders."""
        found = self.filesystem.find(self.path, detail=True)
        return {path: facts for path, facts in found.items() if not path.endswith("/")}

    def _local_files(self) -> dict[str, FileMark]:
        paths = sorted(path.as_posix() for path in _walk(Path(self.path), frozenset()))
        return {path: _local_mark(Path(path)) for path in paths}

    def _remote_files(self) -> dict[str, FileMark]:
        found = sorted(self._found().items())
        return {path: _remote_mark(facts) for path, facts in found if not self._is_hidden(path)}

    def _is_hidden(self, path: str) -> bool:
        return any(part.startswith(".") for part in self.inside(path).split("/"))

    def _ask(self, verb: str, question: Callable[[], T]) -> T:
        """What the file system answers, or one sentence about why it does not."""
        try:
            return question()
        except Exception as error:  # every file system has errors of its own
            refusal = self.error(f"{self.label} cannot be {verb}: {reason_of(error)}")
            refusal.is_missing = isinstance(error, FileNotFoundError)
            raise refusal from None


def fingerprint(place: Location, files: Mapping[str, FileMark]) -> str:
    """A name for the files of a source: their names inside it, sizes and marks; not where it lies."""
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
