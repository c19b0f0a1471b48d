"""Atomic writes: complete or not at all, and nothing left behind."""

import os
import stat
from pathlib import Path

import pytest

from mole.errors import LayerFileError
from mole.storage.atomic import (
    clear_stale,
    new_file,
    new_folder,
    new_secret_file,
    private_folder,
    put_aside,
    reason_of,
)
from mole.storage.locations import Location, local_path


class Interrupted(BaseException):
    """As Ctrl-C is, not an Exception."""


def stopped(context, stop, write):
    with context as temporary:
        write(temporary)
        raise stop


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "layer"
    path.write_bytes(b"old")
    with new_file(path) as temporary:
        temporary.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names_in(tmp_path) == ["layer"]


@pytest.mark.parametrize("stop", [OSError, Interrupted])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, stop):
    path = tmp_path / "layer"
    path.write_bytes(b"old")
    with pytest.raises(stop):
        stopped(new_file(path), stop, lambda temporary: temporary.write_bytes(b"half"))
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["layer"]


@pytest.fixture
def generous():
    """A umask that lets everybody read and write everything."""
    previous = os.umask(0)
    yield
    os.umask(previous)


@pytest.mark.usefixtures("generous")
def test_a_file_is_private_from_the_start(tmp_path):
    (tmp_path / "images").write_bytes(b"old")
    assert permissions(tmp_path / "images") == 0o666
    with new_file(tmp_path / "images") as temporary:
        assert permissions(temporary) == 0o600
        temporary.write_bytes(b"pixels")
    assert permissions(tmp_path / "images") == 0o600


@pytest.mark.usefixtures("generous")
def test_everything_in_a_new_folder_is_private(tmp_path):
    with new_folder(tmp_path / "audit") as temporary:
        (temporary / "data").mkdir()
        (temporary / "data" / "page.html").write_text("page")
    found = {path.name: permissions(path) for path in tmp_path.rglob("*")}
    assert found == {"audit": 0o700, "data": 0o700, "page.html": 0o600}


@pytest.mark.usefixtures("generous")
def test_folders_that_are_missing_are_private_and_others_stay(tmp_path):
    (tmp_path / "mine").mkdir()
    private_folder(tmp_path / "mine" / "new" / "data")
    private_folder(tmp_path / "mine" / "new" / "data")
    found = {path.name: permissions(path) for path in tmp_path.rglob("*")}
    assert found == {"mine": 0o777, "new": 0o700, "data": 0o700}
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "file" / "data")


def test_a_umask_that_allows_less_is_kept(tmp_path):
    previous = os.umask(0o277)
    try:
        with new_file(tmp_path / "images"):
            pass
    finally:
        os.umask(previous)
    assert permissions(tmp_path / "images") == 0o400


def test_a_folder_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "audit"
    with new_folder(path) as temporary:
        (temporary / "data").mkdir()
        (temporary / "data" / "page.html").write_text("page")
        assert not path.exists()
        assert permissions(temporary) == 0o700
    assert (path / "data" / "page.html").read_text() == "page"
    assert names_in(path.parent) == ["audit"]
    assert permissions(path) == 0o700


@pytest.mark.parametrize("stop", [OSError, Interrupted])
def test_a_folder_that_failed_leaves_nothing(tmp_path, stop):
    with pytest.raises(stop):
        stopped(
            new_folder(tmp_path / "audit"), stop, lambda folder: (folder / "page.html").write_text("half")
        )
    assert names_in(tmp_path) == []


def test_a_folder_with_something_in_it_is_not_replaced(tmp_path):
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "mine").write_text("kept")
    with pytest.raises(OSError, match="not empty"), new_folder(tmp_path / "audit") as temporary:
        (temporary / "page.html").write_text("page")
    assert names_in(tmp_path) == ["audit"]
    assert names_in(tmp_path / "audit") == ["mine"]


@pytest.fixture
def audit(tmp_path) -> Path:
    """A folder that was written before."""
    with new_folder(tmp_path / "audit") as temporary:
        for name in ("page.html", "summary.html"):
            (temporary / name).write_text("old")
    return tmp_path / "audit"


def test_a_folder_takes_the_place_of_one_with_the_same_files(audit):
    with new_folder(audit, ["page.html", "summary.html"]) as temporary:
        (temporary / "page.html").write_text("new")
        assert (audit / "page.html").read_text() == "old"
    assert (names_in(audit.parent), names_in(audit)) == (["audit"], ["page.html"])
    assert (audit / "page.html").read_text() == "new"


def test_but_not_of_one_with_others_too(audit):
    with pytest.raises(OSError, match="not empty"), new_folder(audit, ["page.html"]) as temporary:
        (temporary / "page.html").write_text("new")
    assert (audit / "page.html").read_text() == (audit / "summary.html").read_text() == "old"
    assert names_in(audit.parent) == ["audit"]


@pytest.mark.parametrize("stop", [OSError, Interrupted])
def test_what_was_put_aside_comes_back_when_the_new_one_fails(audit, stop):
    away: list[bool] = []
    with pytest.raises(stop):
        stopped(put_aside(audit), stop, lambda _: away.append(not audit.exists()))
    assert away == [True]
    assert (names_in(audit.parent), names_in(audit)) == (["audit"], ["page.html", "summary.html"])


def test_what_was_put_aside_does_not_come_back_over_the_new_one(audit):
    def arrive(_):
        audit.mkdir()
        (audit / "new.html").write_text("new")

    with pytest.raises(Interrupted):
        stopped(put_aside(audit), Interrupted, arrive)
    assert names_in(audit) == ["new.html"]


def test_what_killed_runs_left_is_cleared_and_nothing_else(tmp_path):
    for name in (".a [1].1f2e3d4c.part", ".ab.1f2e3d4c.part", "a [1].part", ".a [1]", ".a 1.12.part"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".a [1].5a6b7c8d.part").mkdir()
    (tmp_path / ".a [1].5a6b7c8d.part" / "page.html").write_text("half")
    clear_stale(tmp_path / "a [1]")
    assert names_in(tmp_path) == [".a 1.12.part", ".a [1]", ".ab.1f2e3d4c.part", "a [1].part"]
    clear_stale(tmp_path / "no such folder" / "a")


@pytest.mark.parametrize("new", [new_file, new_folder])
def test_writing_clears_what_killed_runs_left(tmp_path, new):
    (tmp_path / ".a.1f2e3d4c.part").mkdir()
    (tmp_path / ".a.5a6b7c8d.part").write_bytes(b"half")
    with new(tmp_path / "a") as temporary:
        if new is new_file:
            temporary.write_bytes(b"whole")
    assert names_in(tmp_path) == ["a"]


def test_a_secret_file_never_replaces_another(tmp_path):
    new_secret_file(tmp_path / "key", b"first")
    with pytest.raises(FileExistsError):
        new_secret_file(tmp_path / "key", b"second")
    assert (tmp_path / "key").read_bytes() == b"first"
    assert permissions(tmp_path / "key") == 0o600
    assert names_in(tmp_path) == ["key"]


def test_a_file_system_without_second_names(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    new_secret_file(tmp_path / "key", b"first")
    assert (tmp_path / "key").read_bytes() == b"first"
    with pytest.raises(FileExistsError):
        new_secret_file(tmp_path / "key", b"second")
    assert names_in(tmp_path) == ["key"]


def test_reasons_are_one_line():
    assert reason_of(ValueError("several\n lines.")) == "several lines"
    assert reason_of(KeyError()) == "KeyError"
    assert reason_of(LayerFileError("x.part cannot be written: disk full")) == "disk full"


def test_the_home_folder_of_somebody_else_or_of_nobody(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("~/photos") == tmp_path / "photos"
    assert Location.of("~/photos").path == str(tmp_path / "photos")
    assert local_path("~no-such-user-here/photos").parts[0] == "~no-such-user-here"
