"""Deliveries that take the place of others: only of deliveries, and the old one stays till the end."""

import json

import pyrage
import pytest

from deliveries import SMALL, contents, make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.place import beside, refuse_taken, what_is_left
from mole.sources.opening import open_source
from mole.storage import locations
from mole.storage.stores import LocalStore, open_store


@pytest.fixture
def source(tmp_path):
    return open_source(str(write_npz(tmp_path / "data.npz", train=40, test=0)))


@pytest.fixture
def out(source, tmp_path):
    """A finished delivery in 32 bits."""
    deliver(source, make_layer(), make_key(), tmp_path / "out", **SMALL)
    return tmp_path / "out"


def in_half(source, out, **options):
    return deliver(source, make_layer(), make_key(), out, dtype="float16", **SMALL, **options)


def test_another_delivery_is_replaced_when_that_is_asked_for(source, out, tmp_path):
    made = in_half(source, out, replace=True)
    assert made.delivery.label == str(out)
    assert not made.was_complete
    assert all(check.holds for check in verify(out))
    assert json.loads((out / "manifest.json").read_text())["dtype"] == "float16"
    assert {path.name for path in tmp_path.iterdir()} == {"data.npz", "out"}
    elsewhere = in_half(source, tmp_path / "elsewhere").delivery
    assert set(contents(out)) == set(contents(tmp_path / "elsewhere"))
    assert elsewhere.manifest == made.delivery.manifest
    assert in_half(source, out, replace=True).was_complete


def test_the_old_one_stays_until_the_new_one_is_complete(source, out, monkeypatch):
    before = contents(out)
    make, written = LocalStore.make, []

    def full(self, name, write):
        if len(written) == 2:
            raise DeliveryError("the disk is full")
        written.append(name)
        make(self, name, write)

    monkeypatch.setattr(LocalStore, "make", full)
    with pytest.raises(DeliveryError, match="the disk is full"):
        in_half(source, out, replace=True)
    monkeypatch.undo()
    assert contents(out) == before
    assert "1 finished data file" in what_is_left(str(out))
    kept = beside(out) / written[-1]
    time = kept.stat().st_mtime_ns
    in_half(source, out, replace=True)
    assert (out / written[-1]).stat().st_mtime_ns == time  # the same call resumed
    assert all(check.holds for check in verify(out))
    assert not beside(out).exists()


@pytest.mark.parametrize("name", ["thesis.txt", "data/thesis.parquet", "manifest.json.bak"])
def test_nothing_but_a_delivery_is_ever_replaced(source, out, name):
    (out / name).write_text("precious")
    before = contents(out)
    with pytest.raises(DeliveryError, match="only a delivery is ever replaced: choose another place"):
        in_half(source, out, replace=True)
    assert contents(out) == before
    assert not beside(out).exists()


def test_somebody_elses_manifest_is_no_delivery(source, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "manifest.json").write_text('{"name": "a web app"}')
    with pytest.raises(DeliveryError, match=r"manifest\.json"):
        in_half(source, tmp_path / "app", replace=True)
    assert contents(tmp_path / "app") == {"manifest.json": b'{"name": "a web app"}'}


def test_a_free_place_needs_no_leave(source, tmp_path):
    assert in_half(source, tmp_path / "new", replace=True).delivery.manifest.rows == 40


def test_a_sealed_delivery_takes_the_place_of_a_clear_one(source, out):
    recipient = str(pyrage.x25519.Identity.generate().to_public())
    assert "manifest.json" in contents(out)
    made = in_half(source, out, replace=True, recipients=[recipient])
    assert made.delivery.is_sealed
    assert all(name.endswith(".age") for name in contents(out))


def test_the_key_is_opened_only_when_nothing_else_is_wrong(source, out):
    def opened():
        pytest.fail("the key was opened")

    with pytest.raises(DeliveryError, match="another delivery already, made with another dtype"):
        deliver(source, make_layer(), opened, out, dtype="float16", **SMALL)
    (out.parent / "full").mkdir()
    (out.parent / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(DeliveryError, match="is not empty"):
        deliver(source, make_layer(), opened, out.parent / "full", **SMALL)
    made = deliver(source, make_layer(), make_key, out, **SMALL)
    assert made.was_complete


def test_what_is_left_is_told_truly(source, out, tmp_path):
    assert what_is_left(str(tmp_path / "nothing")) == "nothing was written; call again to start over"
    assert what_is_left(str(out)) == f"the delivery in {out} is complete"
    may_be_old = f"the delivery in {out} is complete, and may be the one from before"
    assert what_is_left(str(out), replacing=True) == may_be_old
    (out / "manifest.json").rename(out / "unfinished.json")
    shards = list((out / "data").iterdir())
    said = what_is_left(str(out))
    assert said.startswith(f"{out} holds {len(shards)} finished data files, ")
    assert said.endswith(" kB; the same call resumes")


def test_a_finished_delivery_that_lacks_files_is_not_called_complete(source, out):
    shards = sorted((out / "data").iterdir())
    content = shards[0].read_bytes()
    shards[0].unlink()
    for replace in (False, True):
        with pytest.raises(DeliveryError, match=rf"{shards[0].name} no longer exists: get it back"):
            deliver(source, make_layer(), make_key(), out, replace=replace, **SMALL)
    shards[0].write_bytes(content)
    assert deliver(source, make_layer(), make_key(), out, **SMALL).was_complete


def test_one_that_is_to_be_replaced_is_read_whole(source, out):
    shard = min((out / "data").iterdir())
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(DeliveryError, match=rf"{shard.name} is damaged: get it back"):
        deliver(source, make_layer(), make_key(), out, replace=True, **SMALL)
    assert shard.read_bytes() == content


@pytest.mark.parametrize(
    ("refusal", "reason", "words"),
    [
        (FileNotFoundError("bucket"), "nothing lies there", "cannot be written: there is no such bucket"),
        (PermissionError("bucket"), "for you it does not exist", "cannot be listed: for you it does not"),
    ],
    ids=["missing", "forbidden"],
)
def test_a_missing_bucket_is_known_whatever_the_words(monkeypatch, refusal, reason, words):
    """What is missing is told by the kind of the error, and not by its sentence."""

    def refuse(location):
        raise refusal

    monkeypatch.setattr(locations.Location, "_found", refuse)
    monkeypatch.setattr(locations, "reason_of", lambda error: reason)
    with pytest.raises(DeliveryError, match=words):
        refuse_taken(open_store("memory://bucket/delivery"), {})
