"""Write beside, then rename: a reader never meets half a file, and a failure leaves nothing behind."""

import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = ".part"  # how names of unfinished files end


@contextmanager
def new_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary path in the same folder that takes the place of `path` when all went well.

    A private one is a file that only its owner can read, from the start.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        if private:
            _write_new(temporary, b"")
        yield temporary
        _flush(temporary)
        temporary.replace(path)
        _flush_names(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def clear_stale(path: Path) -> None:
    """Remove what killed runs left beside a file that will be written."""
    name = glob.escape(path.name)
    for pattern in (
        f".{name}.*{TEMPORARY}",
        f"..{name}.*{TEMPORARY}",
    ):  # a sealed file has one beside that one
        for stale in path.parent.glob(pattern):
            stale.unlink(missing_ok=True)


def new_secret_file(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and that must not exist yet.

    It appears under its name at once and complete: as a second name of a finished file. A file that is
    there already is never touched: `FileExistsError` then.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
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
