"""Atomic writes: nobody ever meets half a file, and a failure leaves nothing behind.

    with new_file(path) as temporary:
        temporary.write_bytes(content)

Whatever is written gets a temporary name next to its final one, and is renamed when it is complete. Only
its owner can read it, from the first byte on: what is written here shows people's images, or opens them.
"""

import glob
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mole.errors import FileError

ARROWS_REASON = re.compile(r"Detail: \[errno \d+\] (.+)", re.DOTALL)  # behind words of its own
TEMPORARY = ".part"  # how names of unfinished files end


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of `path`, and of a file that is there, when all went well.

    It is an empty file that only its owner can read: write into it, and do not replace it.
    """
    clear_stale(path)
    temporary = _temporary(path)
    try:
        _write_new(temporary, b"")
        yield temporary
        _flush(temporary)
        temporary.replace(path)
        _flush_names(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(
    path: Path, instead_of: Sequence[str] = (), *, may_replace: Callable[[], bool] = lambda: False
) -> Iterator[Path]:
    """A temporary folder that becomes `path` when all went well; only its owner can read what is in it.

    A folder that is there already, and not empty, is never touched: an `OSError` then. Only files of the
    names in `instead_of` make way, once all else is done, and never a folder that has others too; or else
    a folder of which `may_replace` says so, which is asked at that moment.
    """
    clear_stale(path)
    temporary = _temporary(path)
    try:
        private_folder(temporary)
        yield temporary
        for entry in temporary.rglob("*"):
            entry.chmod(entry.stat().st_mode & 0o700)  # so that a copy elsewhere is private too
            if entry.is_file():
                _flush(entry)
        names = {entry.name for entry in path.iterdir()} if path.is_dir() else None
        if names is not None and ((instead_of and names <= {*instead_of}) or may_replace()):
            with put_aside(path):
                temporary.rename(path)
        else:
            temporary.rename(path)
        _flush_names(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def put_aside(path: Path) -> Iterator[None]:
    """Take a folder away while another one takes its place; it comes back if that fails."""
    aside = _temporary(path)
    try:
        path.rename(aside)
        yield
    except BaseException:
        with suppress(OSError):  # it was not taken away yet, or the other one has its place
            aside.rename(path)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for its owner alone; one that is there stays."""
    for folder in (*reversed(path.parents), path):
        with suppress(FileExistsError):
            if not folder.is_dir():
                folder.mkdir(mode=0o700)


def new_secret_file(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and that must not exist yet.

    It appears under its name at once and complete: as a second name of a finished file. A file that is
    there already is never touched: `FileExistsError` then.
    """
    temporary = _temporary(path)
    try:
        _write_new(temporary, content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without second names, as on many memory sticks
            _write_new(path, content)
        _flush_names(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def clear_stale(path: Path) -> None:
    """Remove what killed runs left next to a file or folder that is about to be written."""
    for stale in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}{TEMPORARY}"):
        if stale.is_dir():
            shutil.rmtree(stale, ignore_errors=True)
        else:
            with suppress(OSError):  # whatever stands in the way, writing will say so
                stale.unlink()


def reason_of(error: Exception) -> str:
    """Why a file system said no, in one line, without the temporary name of a file.

    >>> reason_of(PermissionError(13, "Permission denied"))
    'Permission denied'
    >>> reason_of(FileNotFoundError("bucket/name"))
    'it does not exist'
    >>> reason_of(OSError(28, "writing .model.safetensors.1f2e3d4c.part failed"))
    'No space left on device'
    >>> reason_of(OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"))
    'No space left on device'
    """
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, FileError):
        said = said.rpartition(" cannot be written: ")[2]
    elif isinstance(error, OSError) and error.errno and TEMPORARY in said:
        said = os.strerror(error.errno)
    if isinstance(error, FileNotFoundError) and TEMPORARY not in str(error.filename):
        said = "it does not exist"
    elif isinstance(error, IsADirectoryError):
        said = "it is a folder"
    elif found := ARROWS_REASON.search(said):
        said = found[1]
    return " ".join(said.split()).rstrip(".") or type(error).__name__


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _flush(path: Path) -> None:
    """Make a file survive a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _flush_names(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
