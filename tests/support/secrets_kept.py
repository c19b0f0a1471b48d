"""age identities, SSH keys and a watch over everything that is written below a folder."""

import ctypes
import os
import struct
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pyrage

from mole.storage.stores import LocalStore, Store

CREATED, MOVED_IN, IS_FOLDER = 0x100, 0x80, 0x40000000
EVENT = struct.Struct("iIII")
DEVELOPER = pyrage.x25519.Identity.generate()
STRANGER = pyrage.x25519.Identity.generate()
RECIPIENT = str(DEVELOPER.to_public())


def ssh_key(path: Path, *, passphrase: str = "", kind: str = "ed25519") -> Path:
    """A new key pair, made by OpenSSH itself: the private one's path, with .pub beside it."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "a test", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


def copy_files(source: Store, target: Store) -> None:
    """Every file of a store, into another one."""
    for name in source.names():
        target.write(name, source.read(name))


def sealed_files(folder: Path) -> set[str]:
    """The names of a folder's files as they lie there."""
    return LocalStore(folder).names()


class Watch:
    """Keeps a second name of every file that appears below a folder, however short its life.

    The kernel tells of each new file (inotify), and a hard link made then outlives renaming and removal.
    """

    def __init__(self, root: Path, kept: Path) -> None:
        self.root, self.kept, self.seen = root, kept, []
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = self._libc.inotify_init1(os.O_CLOEXEC)
        self._folders: dict[int, Path] = {}
        kept.mkdir()
        self._follow(root)

    def _follow(self, folder: Path) -> None:
        number = self._libc.inotify_add_watch(self._inotify, os.fsencode(folder), CREATED | MOVED_IN)
        assert number >= 0
        self._folders[number] = folder
        for path in folder.iterdir():
            self._look_at(path)

    def _look_at(self, path: Path) -> None:
        try:
            if path.is_dir():
                self._follow(path)
            else:
                os.link(path, self.kept / str(len(self.seen)))
                self.seen.append(path)
        except FileNotFoundError:
            pass

    def run(self) -> None:
        while True:
            events = os.read(self._inotify, 1 << 16)
            while events:
                number, _, _, length = EVENT.unpack_from(events)
                name = events[EVENT.size : EVENT.size + length].rstrip(b"\0")
                if name == b"the-end":
                    return
                self._look_at(self._folders[number] / os.fsdecode(name))
                events = events[EVENT.size + length :]

    def contents(self) -> list[bytes]:
        """What was written to every file that was seen."""
        return [(self.kept / str(number)).read_bytes() for number in range(len(self.seen))]


@contextmanager
def watched(root: Path, kept: Path):
    """Watch a folder and all folders below it."""
    watch = Watch(root, kept)
    thread = threading.Thread(target=watch.run)
    thread.start()
    try:
        yield watch
    finally:
        (root / "the-end").touch()
        thread.join()
