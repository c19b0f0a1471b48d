"""What a path or URL names: one of fsspec's file systems, and a path on it."""

import os
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from mole.errors import FileError, MissingExtraError
from mole.files.beside import TEMPORARY


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
        raise error(f"{path} can not be opened: {reason_of(refusal)}") from None
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
        said = said.rpartition(" can not be written: ")[2]  # of a file beside, whose name nobody knows
    elif isinstance(error, OSError) and error.errno and TEMPORARY in said:
        said = os.strerror(error.errno)
    if isinstance(error, FileNotFoundError) and not error.strerror:
        said = "it is not there"
    return " ".join(said.split()).rstrip(".") or type(error).__name__
