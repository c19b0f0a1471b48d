"""A delivery to a place where one lies already: finished, unfinished, or something else."""

import shutil
import time

import numpy as np
import pytest
from PIL import Image

from deliveries import SMALL, contents, make_key, make_layer, unfinish, write_npz
from mole.errors import DeliveryError
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore


@pytest.fixture
def source(tmp_path):
    return open_source(str(write_npz(tmp_path / "data.npz")))


def test_making_it_again_gives_the_same_bytes(source, tmp_path):
    for name in ("one", "two"):
        deliver(source, make_layer(), make_key(), LocalStore(tmp_path / name), **SMALL)
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    data = [name for name in one if name.startswith("data/")]
    assert data
    assert all(one[name] == two[name] for name in data)


def test_a_finished_delivery_is_left_alone(source, tmp_path):
    store = LocalStore(tmp_path / "out")
    first = deliver(source, make_layer(), make_key(), store, **SMALL)
    before = contents(tmp_path / "out")
    again = deliver(source, make_layer(), make_key(), store, **SMALL)
    assert again.delivery.manifest == first.delivery.manifest
    assert (first.was_complete, again.was_complete) == (False, True)
    assert contents(tmp_path / "out") == before


CHANGES = {
    "key": "another key",
    "layer": "another first layer",
    "source": "other data",
    "dtype": "another dtype",
    "resize": "another resize",
}


def leave_unfinished(store, source):
    """A delivery that was interrupted after its first data file."""
    make = LocalStore.make

    def full(self, name, write):
        make(self, name, write)
        if name.startswith("data/"):
            raise DeliveryError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "make", full)
        with pytest.raises(DeliveryError, match="the disk is full"):
            deliver(source, make_layer(), make_key(), store, **SMALL)


def other_call(source, tmp_path, other):
    """The arguments of a call that differs in one thing."""
    changed = {
        "key": (source, make_layer(), make_key(1), SMALL),
        "layer": (source, make_layer(1), make_key(), SMALL),
        "source": (
            open_source(str(write_npz(tmp_path / "other.npz", train=101))), make_layer(), make_key(), SMALL,
        ),
        "dtype": (source, make_layer(), make_key(), {**SMALL, "dtype": "int8"}),
        "resize": (source, make_layer(), make_key(), {**SMALL, "resize": "crop"}),
    }  # fmt: skip
    return changed[other]


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("other", CHANGES)
def test_something_else_for_the_same_place_is_refused(source, tmp_path, monkeypatch, other, finished):
    store = LocalStore(tmp_path / "out")
    if finished:
        deliver(source, make_layer(), make_key(), store, **SMALL)
    else:
        leave_unfinished(store, source)
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "another user"))  # or the ledger would speak first
    before = contents(tmp_path / "out")
    first, layer, key, options = other_call(source, tmp_path, other)
    what = "another delivery already" if finished else "an unfinished delivery"
    with pytest.raises(DeliveryError) as refused:
        deliver(first, layer, key, store, **options)
    assert f"holds {what}, made with {CHANGES[other]}: " in str(refused.value)
    assert str(refused.value).endswith("or replace it: give replace=True")
    assert contents(tmp_path / "out") == before


def test_what_an_unfinished_delivery_is_made_from_tells_nothing_of_the_data(source, tmp_path):
    """It may lie in clear: the data is named by a digest that only the key's holder can compute."""
    leave_unfinished(LocalStore(tmp_path / "out"), source)
    pinned = (tmp_path / "out" / "unfinished.json").read_text()
    assert source.fingerprint not in pinned
    assert "data.npz" not in pinned
    leave_unfinished(LocalStore(tmp_path / "again"), source)
    assert (tmp_path / "again" / "unfinished.json").read_text() == pinned


@pytest.mark.parametrize("finished", [True, False])
def test_pixels_that_changed_in_place_are_refused(tmp_path, rng, finished):
    """The same names and sizes, other pixels: half a delivery of each would fit together unnoticed."""
    (tmp_path / "photos").mkdir()
    for index in range(4):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(
            tmp_path / "photos" / f"{index}.bmp"
        )
    store = LocalStore(tmp_path / "out")
    made = deliver(open_source(str(tmp_path / "photos")), make_layer(), make_key(), store, **SMALL)
    if not finished:
        unfinish(made.delivery)
    changed = tmp_path / "photos" / "2.bmp"
    size = changed.stat().st_size
    time.sleep(0.02)  # longer than the clock of a file system ticks
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(changed)
    assert changed.stat().st_size == size
    with pytest.raises(DeliveryError, match=r"another delivery already|an unfinished delivery, made with"):
        deliver(open_source(str(tmp_path / "photos")), make_layer(), make_key(), store, **SMALL)


def test_a_place_with_other_things_in_it_is_refused(source, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("precious")
    with pytest.raises(DeliveryError, match="is not empty"):
        deliver(source, make_layer(), make_key(), LocalStore(tmp_path / "out"), **SMALL)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_a_full_disk_leaves_a_delivery_that_goes_on(source, tmp_path, monkeypatch):
    store = LocalStore(tmp_path / "out")
    make, written = LocalStore.make, []

    def full(self, name, write):
        if name.startswith("data/") and len(written) >= 3:
            raise DeliveryError(f"{name} cannot be written: No space left on device")
        written.append(name)
        make(self, name, write)

    monkeypatch.setattr(LocalStore, "make", full)
    with pytest.raises(DeliveryError, match="No space left"):
        deliver(source, make_layer(), make_key(), store, **SMALL)
    monkeypatch.undo()
    deliver(source, make_layer(), make_key(), store, **SMALL)
    deliver(source, make_layer(), make_key(), LocalStore(tmp_path / "undisturbed"), **SMALL)
    assert {k: v for k, v in contents(tmp_path / "out").items() if k.startswith("data/")} == {
        k: v for k, v in contents(tmp_path / "undisturbed").items() if k.startswith("data/")
    }
    shutil.rmtree(tmp_path / "out")
