"""One writer at a time in a place: a lock file that says who is at work there.

    with folder_lock(Path("delivery"), "delivery"): ...
    with remote_lock(Location.of("s3://bucket/delivery/deliver.lock"), "s3://bucket/delivery"): ...

On a disk the operating system holds the lock, and lets go of it when its holder ends, however it ends.
Behind a URL the lock is the file itself, written only where none is: a holder that was killed leaves it
behind. The next one on the same machine sees that; on another machine its message says what to remove.
"""

import json
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from mole.errors import DeliveryError
from mole.storage.atomic import reason_of
from mole.storage.locations import Location

try:
    import fcntl
except ImportError:  # Windows: the file itself is the lock there, too
    fcntl = None  # type: ignore[assignment]

LOCK = "deliver.lock"
MAX_BYTES = 1000
TRIES = 100  # each meets another process that leaves at the same moment
_HOST = re.compile(r"[A-Za-z0-9._-]{1,100}")
_SINCE = re.compile(r"[0-9T:+-]{19,25}")
_ours: set[str] = set()


@dataclass(frozen=True)
class Holder:
    """Who is at work.

    Attributes:
        host, pid: which process on which machine.
        since: when it began, in UTC.
        token: a random name for this one piece of work.
    """

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    since: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def __str__(self) -> str:
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"process {self.pid}{where}, since {self.since}"

    @property
    def content(self) -> bytes:
        """What the lock file holds."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def is_gone(self) -> bool:
        """Whether it was a process of this machine that has ended."""
        if self.host != socket.gethostname():
            return False
        if self.pid == os.getpid():
            return self.token not in _ours
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    @classmethod
    def parse(cls, content: bytes) -> "Holder | None":
        """Whom a lock file names; None where it is none of ours."""
        try:
            holder = cls(**json.loads(content))
        except (ValueError, TypeError, RecursionError):
            return None
        is_ours = (
            all(isinstance(text, str) for text in (holder.host, holder.since, holder.token))
            and _HOST.fullmatch(holder.host)
            and _SINCE.fullmatch(holder.since)
            and type(holder.pid) is int
            and 0 < holder.pid < 1 << 31
        )
        return holder if is_ours else None


@contextmanager
def folder_lock(folder: Path, label: str) -> Iterator[None]:
    """Be the only one to write into a folder, which is made if need be; an error says who is at work.

    A folder that was made for this, and in which nothing is left, is removed again.
    """
    is_new = not folder.exists()
    path = folder / LOCK
    if fcntl is None:
        with remote_lock(Location.of(str(path), DeliveryError), label):
            yield
        return
    try:
        descriptor = _acquire(path, label)
    except OSError as error:
        raise DeliveryError(f"{label} cannot be written: {reason_of(error)}") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        if is_new:
            with suppress(OSError):  # something lies there
                folder.rmdir()


def _acquire(path: Path, label: str) -> int:
    """The lock file, opened and locked."""
    for _ in range(TRIES):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:  # somebody has just removed the folder
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_there(path, descriptor):
                os.truncate(descriptor, 0)
                os.write(descriptor, Holder().content)
                return descriptor
        except BlockingIOError:
            holder = Holder.parse(os.pread(descriptor, MAX_BYTES, 0))
            os.close(descriptor)
            raise _busy(label, holder) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise _busy(label, None)


def _is_still_there(path: Path, descriptor: int) -> bool:
    """Whether an opened file still has its name: whoever held it may have removed it meanwhile."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def remote_lock(file: Location, label: str) -> Iterator[None]:
    """Be the only one to write into a place that has this lock file; an error says who is at work.

    It is as good as the file system's way of writing a file only where none is: S3 has one, others may
    only look first.
    """
    me = Holder()
    _ours.add(me.token)
    try:
        _take(file, me, label)
        try:
            yield
        finally:
            with suppress(DeliveryError):
                if _content(file) == me.content:
                    file.remove()
    finally:
        _ours.discard(me.token)


def _take(file: Location, me: Holder, label: str) -> None:
    """Write the lock file, in the place of one whose holder has ended."""
    if not file.create(me.content):
        found = _content(file)
        holder = None if found is None else Holder.parse(found)
        if found is not None and (holder is None or not holder.is_gone):
            raise _busy(label, holder, file.label)
        file.remove()
        file.create(me.content)
    found = _content(file)  # a file system that only looked first may have let in another one
    if found != me.content:
        raise _busy(label, None if found is None else Holder.parse(found), file.label)


def _content(file: Location) -> bytes | None:
    """What a lock file holds; None where it was removed meanwhile."""
    try:
        return file.start(MAX_BYTES)
    except DeliveryError:
        return None


def _busy(label: str, holder: Holder | None, left_behind: str | None = None) -> DeliveryError:
    who = "another process" if holder is None else str(holder)
    remedy = "" if left_behind is None else f"; if it was killed, remove {left_behind}"
    return DeliveryError(
        f"{label} is being written by {who}: wait until it has ended, or choose another place{remedy}"
    )
