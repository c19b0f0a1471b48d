"""What becomes of two deliveries, the old one and the new one, when somebody interferes."""

import json
from pathlib import Path

import pytest

from deliveries import SMALL, contents, make_key, make_layer, unfinish, write_npz
from mole.errors import DeliveryError
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.place import beside
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore


@pytest.fixture
def source(tmp_path):
    return open_source(str(write_npz(tmp_path / "data.npz", train=40, test=0)))


@pytest.fixture
def out(source, tmp_path):
    """A finished delivery in 32 bits."""
    into(source, tmp_path / "out", "float32")
    return tmp_path / "out"


def into(source, out, dtype, **options):
    return deliver(source, make_layer(), make_key(), out, dtype=dtype, **SMALL, **options)


def dtype_of(folder):
    return json.loads((folder / "manifest.json").read_text())["dtype"]


def begin(source, out):
    """Data files of an unfinished delivery in 16 bits, beside the one whose place it is to take."""
    made = into(source, beside(out), "float16").delivery
    pinned = {"delivery_id": made.manifest.delivery_id, "parts": {}}
    unfinish(made)
    made.store.write("unfinished.json", json.dumps(pinned).encode())


def complete(source, out):
    """A complete delivery in 16 bits, beside the one whose place it is to take."""
    into(source, beside(out), "float16")


@pytest.mark.parametrize("stage", [begin, complete])
def test_the_work_of_one_that_is_running_is_not_removed(source, out, stage):
    stage(source, out)
    before = contents(beside(out)), contents(out)
    with LocalStore(beside(out)).locked():
        with pytest.raises(DeliveryError, match=r"\.out\.new is being written by process"):
            into(source, out, "int8", replace=True)
        assert {**before[0], "deliver.lock": b""}.keys() == contents(beside(out)).keys()
    assert (contents(beside(out)), contents(out)) == before
    into(source, out, "int8", replace=True)  # its owner has ended: now it makes way
    assert dtype_of(out) == "int8"
    assert not beside(out).exists()


def test_nobody_comes_between_the_last_file_and_its_place(source, out, monkeypatch):
    """A second call that arrives when the first one has only to put its delivery in place."""
    rename, told = Path.rename, []

    def interfere(self, target):
        if self == out and not told:
            told.append("")
            with pytest.raises(DeliveryError, match="is being written by process") as error:
                into(source, out, "int8", replace=True)
            told.append(str(error.value))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interfere)
    into(source, out, "float16", replace=True)
    assert len(told) == 2
    assert dtype_of(out) == "float16"
    assert all(check.holds for check in verify(out))


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("which", [0, 1])
def test_an_interruption_leaves_one_of_the_two_in_place(source, out, monkeypatch, which, is_done):
    """Ctrl-C just before and just after each of the two renamings."""
    rename, calls = Path.rename, []

    def interrupted(self, target):
        calls.append(self)
        if len(calls) - 1 != which:
            return rename(self, target)
        if is_done:
            rename(self, target)
        raise KeyboardInterrupt

    complete(source, out)
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        into(source, out, "float16", replace=True)
    monkeypatch.undo()
    assert dtype_of(out) == ("float16" if which and is_done else "float32")
    assert all(check.holds for check in verify(out))
    into(source, out, "float16", replace=True)
    assert dtype_of(out) == "float16"
    into(source, out, "int8", replace=True)
    assert {path.name for path in out.parent.iterdir()} == {"data.npz", "out"}


@pytest.mark.parametrize("replace", [False, True])
def test_one_that_was_killed_between_the_two_renamings_is_finished(source, out, replace):
    complete(source, out)
    times = {path.name: path.stat().st_mtime_ns for path in (beside(out) / "data").iterdir()}
    out.rename(out.with_name(".out.1f2e3d4c.part"))
    assert into(source, out, "float16", replace=replace).was_complete
    assert {path.name: path.stat().st_mtime_ns for path in (out / "data").iterdir()} == times
    assert not beside(out).exists()
    assert set(contents(out)) == {*LocalStore(out).names()}  # no lock is left


def test_only_a_complete_delivery_is_moved(source, out):
    begin(source, out)
    out.rename(out.with_name("elsewhere"))
    into(source, out, "int8")
    assert dtype_of(out) == "int8"
    assert (beside(out) / "unfinished.json").exists()


def test_somebody_elses_hidden_folder_stays(source, out):
    (out.parent / ".out.old").mkdir()
    (out.parent / ".out.old" / "thesis.txt").write_text("precious")
    into(source, out, "float16", replace=True)
    assert contents(out.parent / ".out.old") == {"thesis.txt": b"precious"}
    beside(out).mkdir()
    (beside(out) / "thesis.txt").write_text("precious")
    with pytest.raises(DeliveryError, match="only a delivery is ever replaced"):
        into(source, out, "int8", replace=True)
    assert contents(beside(out)) == {"thesis.txt": b"precious"}
