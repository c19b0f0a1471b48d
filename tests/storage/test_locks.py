"""One writer at a time in a place, on a disk and behind a URL."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys

import fsspec
import pytest

from mole.errors import DeliveryError
from mole.storage import locks
from mole.storage.locations import Location
from mole.storage.locks import LOCK, Holder
from mole.storage.stores import LocalStore, open_store

HOLD = """
import sys, time
from pathlib import Path
from mole.storage.stores import LocalStore
with LocalStore(Path(sys.argv[1])).locked():
    print("locked", flush=True)
    time.sleep(60)
"""


GONE = (1 << 31) - 1  # no process has this number: Linux counts to 2^22


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(locks, "SETTLED", 0.01)


@pytest.fixture(params=["disk", "memory"])
def store(request, tmp_path):
    if request.param == "disk":
        return LocalStore(tmp_path / "delivery")
    fsspec.filesystem("memory").store.clear()
    return open_store("memory://delivery")


def test_the_second_is_told_who_is_at_work(store):
    with store.locked():
        held = json.loads(store.read(LOCK))
        assert (held["host"], held["pid"]) == (socket.gethostname(), os.getpid())
        with pytest.raises(DeliveryError, match=rf"is being written by process {os.getpid()}, since 20"):
            store.locked().__enter__()
        store.write("manifest.json", b"{}")
        assert store.names() == {"manifest.json"}  # so no manifest can list it
    with store.locked():
        pass
    with pytest.raises(DeliveryError):
        store.read(LOCK)


def test_work_that_fails_leaves_no_lock(store):
    with pytest.raises(RuntimeError), store.locked():
        raise RuntimeError
    with store.locked():
        pass


def test_a_folder_made_for_nothing_is_removed(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with LocalStore(tmp_path / name).locked():
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_the_lock_of_a_folder_that_took_the_place_stays(tmp_path):
    folder = tmp_path / "delivery"
    with LocalStore(folder).locked():
        folder.rename(tmp_path / "old")
        other = LocalStore(folder).locked()
        other.__enter__()
    with pytest.raises(DeliveryError, match="is being written"):
        LocalStore(folder).locked().__enter__()
    other.__exit__(None, None, None)
    with LocalStore(folder).locked():
        pass


def test_a_killed_process_of_this_machine_leaves_nothing_stuck(tmp_path):
    folder = tmp_path / "delivery"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(DeliveryError, match=f"is being written by process {process.pid}, since"):
            LocalStore(folder).locked().__enter__()
        process.send_signal(signal.SIGKILL)
    assert (folder / LOCK).exists()
    with LocalStore(folder).locked():
        pass
    assert not (folder / LOCK).exists()
    gone = Holder(pid=process.pid)
    fsspec.filesystem("memory").store.clear()
    store = open_store("memory://delivery")
    store.write(LOCK, gone.content)
    with store.locked():
        assert json.loads(store.read(LOCK))["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("content", "who"),
    [
        (Holder(host="other-machine", pid=7).content, "process 7 on other-machine, since 20"),
        (Holder(host="\x1b[2Jother", pid=7).content, "another process"),
        (Holder(pid="7").content, "another process"),
        (b"[" * 900, "another process"),
        (b"", "another process"),
        (b"{}", "another process"),
        (b'{"pid": 7, "token": "0"}', "another process"),
        (Holder(pid=GONE, machine="another container").content, f"process {GONE}, since 20"),
        (Holder(pid=GONE, machine="").content, f"process {GONE}, since 20"),
    ],
    ids=[
        "other machine",
        "escapes",
        "no number",
        "no JSON",
        "empty",
        "nothing",
        "not all",
        "container",
        "unknown",
    ],
)
def test_a_lock_of_somebody_else_stays_and_the_message_says_what_to_remove(content, who):
    fsspec.filesystem("memory").store.clear()
    store = open_store("memory://delivery")
    store.write(LOCK, content)
    with pytest.raises(DeliveryError, match=f"{who}.*if it was killed, remove memory://delivery/{LOCK}$"):
        store.locked().__enter__()
    assert store.read(LOCK) == content


def test_who_has_just_locked_is_waited_for_to_say_its_name(tmp_path, monkeypatch):
    path = tmp_path / LOCK
    with path.open("w+b", buffering=0) as file:
        locks.fcntl.flock(file, locks.fcntl.LOCK_EX)
        monkeypatch.setattr(locks.time, "sleep", lambda _: file.write(Holder(pid=7).content))
        with pytest.raises(DeliveryError, match="is being written by process 7, since"):
            LocalStore(tmp_path).locked().__enter__()


def test_whatever_an_old_lock_file_on_a_disk_holds_it_locks_nothing(tmp_path):
    (tmp_path / LOCK).write_bytes(b"\xff" * 2000)
    with LocalStore(tmp_path).locked():
        assert Holder.parse((tmp_path / LOCK).read_bytes()).pid == os.getpid()


def test_a_link_in_the_locks_place_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("data")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(DeliveryError, match="d cannot be written"):
        LocalStore(tmp_path / "d").locked().__enter__()
    assert (tmp_path / "precious").read_text() == "data"


def test_a_file_system_that_cannot_write_on_a_condition_is_looked_at_first(monkeypatch):
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    pipe = type(filesystem).pipe_file

    def old(self, path, value, **options):
        if options:
            raise TypeError("an unexpected keyword argument 'mode'")
        pipe(self, path, value)

    monkeypatch.setattr(type(filesystem), "pipe_file", old)
    store = open_store("memory://delivery")
    with store.locked(), pytest.raises(DeliveryError, match="is being written by process"):
        store.locked().__enter__()


def test_a_file_system_that_ignores_the_condition_is_looked_at_first(monkeypatch):
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    pipe = type(filesystem).pipe_file
    monkeypatch.setattr(
        type(filesystem), "pipe_file", lambda self, path, value, **options: pipe(self, path, value)
    )
    place = Location.of("memory://folder/lock")
    assert place.create(b"first")
    assert not place.create(b"second")
    assert place.read() == b"first"


def abandoned():
    """A place behind a URL with a lock of a process that has ended."""
    fsspec.filesystem("memory").store.clear()
    store = open_store("memory://delivery")
    store.write(LOCK, Holder(pid=GONE).content)
    return store


def test_an_abandoned_lock_that_another_takes_over_first_is_left_to_it(monkeypatch):
    store, other = abandoned(), Holder(host="other-machine", pid=7).content
    is_gone = Holder.is_gone.fget

    def slow(holder):
        """The other one takes it over while this one looks whether its holder has ended."""
        answer = is_gone(holder)
        store.write(LOCK, other)
        return answer

    monkeypatch.setattr(Holder, "is_gone", property(slow))
    with pytest.raises(DeliveryError, match="process 7 on other-machine"):
        store.locked().__enter__()
    assert store.read(LOCK) == other


def test_who_took_over_an_abandoned_lock_looks_again_a_little_later(monkeypatch):
    store, other = abandoned(), Holder(host="other-machine", pid=7).content
    monkeypatch.setattr(locks.time, "sleep", lambda _: store.write(LOCK, other))
    with pytest.raises(DeliveryError, match="process 7 on other-machine"):
        store.locked().__enter__()
    assert store.read(LOCK) == other


def test_windows_is_never_asked_whether_a_process_has_ended(monkeypatch):
    assert Holder(pid=GONE).is_gone
    monkeypatch.setattr(locks.sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", None)  # there it would interrupt the process
    assert not Holder(pid=GONE).is_gone


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_disk_without_locks_has_the_file_itself(tmp_path, monkeypatch, code):
    def flock(descriptor, operation):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    store = LocalStore(tmp_path / "delivery")
    with store.locked():
        assert Holder.parse((tmp_path / "delivery" / LOCK).read_bytes()).pid == os.getpid()
        with pytest.raises(DeliveryError, match=f"is being written by process {os.getpid()}, since"):
            store.locked().__enter__()
    assert not (tmp_path / "delivery").exists()


def test_the_folder_is_its_owner_s_alone(tmp_path):
    folder = tmp_path / "new" / "delivery"
    before = os.umask(0o022)
    try:
        with LocalStore(folder).locked():
            assert [path.stat().st_mode & 0o777 for path in (folder.parent, folder)] == [0o700, 0o700]
    finally:
        os.umask(before)
