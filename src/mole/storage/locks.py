"""One writer at a time in a place: a lock file that says who is at work there.

    with folder_lock(Path("delivery"), "delivery"): ...
    with remote_lock(Location.of("s3://bucket/delivery/deliver.lock"), "s3://bucket/delivery"): ...

On a disk the operating system holds the lock, and lets go of it when its holder ends, however it ends.
Behind a URL the lock is the file itself, written only where none is: a holder that was killed leaves it
behind. The next one on the same machine sees that; on another machine its message says what to remove. The
same goes for disks on which the operating system locks nothing.
"""

import errno
import json
import os
import re
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path

from mole.errors import DeliveryError
from mole.storage.atomic import private_folder, reason_of
from mole.storage.locations import Location

try:
    import fcntl
except ImportError:  # Windows: the file itself is the lock there, too
    fcntl = None  # type: ignore[assignment]

LOCK = "deliver.lock"
MAX_BYTES = 1000
TRIES = 100  # each meets another process that leaves at the same moment
SETTLED = 1.0  # seconds after which whoever saw the same abandoned lock has removed it, or will not
NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK)
_HOST = re.compile(r"[A-Za-z0-9._-]{1,100}")
_SINCE = re.compile(r"[0-9T:+-]{19,25}")
_MACHINE = re.compile(r"[A-Za-z0-9:\[\] -]{0,100}")
_ours: set[str] = set()


def _machine() -> str:
    """Which kernel and which numbering of processes this is, where Linux tells: containers share a name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


@dataclass(frozen=True)
class Holder:
    """Who is at work.

    Attributes:
        host, pid: which process on which machine.
        machine: what tells it from others of that name, since it was started; empty where nothing does.
        since: when it began, in UTC.
        token: a random name for this one piece of work.
    """

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    since: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    machine: str = field(default_factory=_machine)

    def __str__(self) -> str:
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"process {self.pid}{where}, since {self.since}"

    @property
    def content(self) -> bytes:
        """What the lock file holds."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def is_gone(self) -> bool:
        """Whether it surely was a process of this machine that has ended.

        Windows is never asked: the question would interrupt the process there.
        """
        if sys.platform == "win32" or (sys.platform == "linux" and not self.machine):
            return False
        if (self.host, self.machine) != (socket.gethostname(), _machine()):
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
            found = json.loads(content)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.keys() != {one.name for one in fields(cls)}:
            return None
        holder = cls(**found)
        is_ours = (
            all(isinstance(found[name], str) for name in ("host", "since", "token", "machine"))
            and _MACHINE.fullmatch(holder.machine)
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
    try:
        private_folder(folder)
        descriptor = _acquire(path, label) if _can_lock(folder) else None
    except (OSError, ValueError) as error:
        raise DeliveryError(f"{label} cannot be written: {reason_of(error)}") from None
    try:
        if descriptor is None:
            with remote_lock(Location.of(str(path), DeliveryError), label):
                yield
        else:
            yield
    finally:
        if descriptor is not None:
            if _is_still_there(path, descriptor):  # else the folder was moved, and the file is another's
                path.unlink(missing_ok=True)
            os.close(descriptor)
        if is_new:
            with suppress(OSError):  # something lies there
                folder.rmdir()


def _can_lock(folder: Path) -> bool:
    """Whether the operating system locks files there; some disks of other machines it does not.

    That is tried on a file without a name: the lock file itself may be another's.
    """
    if fcntl is None:
        return False
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # somebody has just removed the folder
        return True
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return True


def _acquire(path: Path, label: str) -> int:
    """The lock file, opened and locked."""
    content = Holder().content
    for _ in range(TRIES):
        private_folder(path.parent)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:  # somebody has just removed the folder
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_there(path, descriptor):
                os.truncate(descriptor, 0)
                os.write(descriptor, content)
                return descriptor
        except BlockingIOError:
            holder = _named_in(descriptor)
            os.close(descriptor)
            raise _busy(label, holder) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise _busy(label, None)


def _named_in(descriptor: int) -> Holder | None:
    """Who holds a locked file; whoever has just locked it is about to write that."""
    for _ in range(TRIES):
        if found := Holder.parse(os.pread(descriptor, MAX_BYTES, 0)):
            return found
        time.sleep(0.01)
    return None


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
    """Write the lock file, in place of one whose holder has ended."""
    if not file.create(me.content):
        found = _content(file)
        holder = None if found is None else Holder.parse(found)
        if found is not None and (holder is None or not holder.is_gone):
            raise _busy(label, holder, file.label)
        if found is not None:
            if (now := _content(file)) != found:  # another one was quicker
                raise _busy(label, None if now is None else Holder.parse(now), file.label)
            file.remove()
        if file.create(me.content):
            time.sleep(SETTLED)
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
