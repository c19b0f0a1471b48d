"""Opening files that others may have made: those that are files, and nothing that only looks like one."""

import errno
import os
import stat
from os import PathLike
from typing import IO


def open_regular(path: str | PathLike[str]) -> IO[bytes]:
    """A file on this machine, opened for reading; an `OSError` for a pipe, which would be waited for."""
    return open(path, "rb", opener=_opened)


def read_regular(path: str | PathLike[str], length: int | None = None) -> bytes:
    """The first bytes of a file on this machine, or all of them; an `OSError` for a pipe."""
    with open_regular(path) as file:
        return file.read(-1 if length is None else length)


def _opened(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # Python itself refuses folders
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a pipe or a device, and a file is needed here")
    return descriptor
