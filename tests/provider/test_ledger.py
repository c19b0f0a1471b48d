"""The ledger of a key: beside it and in the user's folder; what it stops, and what it warns of."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyrage
import pytest

import mole
from deliveries import make_key, make_layer, write_npz
from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.provider.deliver import deliver
from mole.provider.ledger import STATE, Ledger, keygen_warnings, read_ledger, state_folder
from mole.storage.sealed import SealedStore
from mole.storage.stores import LocalStore

IDENTITY = pyrage.x25519.Identity.generate()
ONE, TWO = make_layer().fingerprint, make_layer(1).fingerprint
SECOND = "this key was used for another first layer before, on 20"


@pytest.fixture
def data(tmp_path) -> Path:
    return write_npz(tmp_path / "data.npz", train=20, test=0)


@pytest.fixture
def key_path(tmp_path, data) -> Path:
    """A key's path; a delivery for the first layer was made under it."""
    (tmp_path / "keys").mkdir()
    path = tmp_path / "keys" / "my.key"
    key = make_key()
    key.save(path, recipients=[str(IDENTITY.to_public())])
    deliver(data, make_layer(), key, tmp_path / "d")
    return path


def opened(path: Path) -> mole.MorphKey:
    return mole.MorphKey.load(path, identities=[str(IDENTITY)])


def test_it_keeps_what_was_left_out(tmp_path, data):
    made = deliver(data, make_layer(), make_key(), tmp_path / "d")
    ledger = Ledger("0" * 32, tmp_path / "my.key")
    assert ledger.record(made.delivery.manifest, ["photos/3.png"]) == []
    (entry,) = read_ledger(tmp_path / "my.key")
    assert (entry.rows, entry.skipped) == (20, ("photos/3.png",))
    assert json.loads((tmp_path / "my.key.ledger").read_text())["skipped"] == ["photos/3.png"]


def test_it_keeps_where_data_went_and_for_whom(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    deliver(data, make_layer(), make_key(), "open")
    deliver(data, make_layer(), make_key(), tmp_path / "sealed", recipients=[str(IDENTITY.to_public())])
    entries = {entry.place: entry.sealed_for for entry in Ledger(make_key().fingerprint).entries()}
    assert entries == {
        str(tmp_path / "open"): (),
        str(tmp_path / "sealed"): (str(IDENTITY.to_public()),),
    }


def test_it_keeps_no_password_of_a_place(data):
    for place in ("memory://me:secret@host/a", "memory://me:sec/ret@host/b", "memory://me:sec?ret@host/c"):
        deliver(data, make_layer(), make_key(), place)
    places = {entry.place for entry in Ledger(make_key().fingerprint).entries()}
    assert places == {f"memory://me@host/{name}" for name in "abc"}


def test_every_place_where_a_delivery_is_written_has_an_entry(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    deliver(data, make_layer(), make_key(), "one")
    made = deliver(data, make_layer(), make_key(), "two")
    for same in (tmp_path / "two", "link/two", f"file://{tmp_path}/two/"):  # finished there already
        assert deliver(data, make_layer(), make_key(), same).was_complete
    ledger = Ledger(make_key().fingerprint)
    assert [entry.place for entry in ledger.entries()] == [str(tmp_path / "one"), str(tmp_path / "two")]
    (once,) = ledger.deliveries()
    assert (once.place, made.rows_under_key) == (str(tmp_path / "one"), 20)


def test_a_delivery_that_is_resumed_has_one_entry(tmp_path, data, monkeypatch):
    def cut_off(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record", cut_off)
        with pytest.raises(KeyboardInterrupt):
            deliver(data, make_layer(), make_key(), tmp_path / "d")
    ledger = Ledger(make_key().fingerprint)
    assert ledger.entries() == []
    for _ in range(2):  # the first finds it finished, and nowhere recorded
        deliver(data, make_layer(), make_key(), tmp_path / "d")
        assert [entry.place for entry in ledger.entries()] == [str(tmp_path / "d")]


def test_an_older_entry_does_not_know_its_place_or_who_can_open_it(tmp_path, data):
    made = deliver(data, make_layer(), make_key(), tmp_path / "d")
    ledger = Ledger(make_key().fingerprint)
    (path,) = ledger.paths()
    older = json.loads(path.read_text())
    del older["place"], older["sealed_for"]
    path.write_text(json.dumps(older) + "\n")
    deliver(data, make_layer(), make_key(), tmp_path / "d")  # it may be the one that was found there
    (entry,) = ledger.entries()
    assert (entry.place, entry.sealed_for) == (None, None)
    deliver(data, make_layer(), make_key(), tmp_path / "elsewhere")
    assert [entry.place for entry in ledger.entries()] == [None, str(tmp_path / "elsewhere")]
    assert {entry.delivery_id for entry in ledger.entries()} == {made.delivery.manifest.delivery_id}


def test_a_store_that_seals_by_itself_is_not_called_open(tmp_path, data):
    recipients, identities = [str(IDENTITY.to_public())], [str(IDENTITY)]
    store = SealedStore(LocalStore(tmp_path / "d"), identities=identities, recipients=recipients)
    assert deliver(data, make_layer(), make_key(), store).delivery.is_sealed
    (entry,) = Ledger(make_key().fingerprint).entries()
    assert entry.sealed_for is None


def test_a_second_developer_is_refused_unless_allowed(key_path, tmp_path, data):
    with pytest.raises(DeliveryError, match=f"{SECOND}.*make a key for each.*allow_second_layer=True"):
        deliver(data, make_layer(1), opened(key_path), tmp_path / "two")
    assert not (tmp_path / "two").exists()
    deliver(data, make_layer(), opened(key_path), tmp_path / "one", dtype="int8")  # the first goes on
    with pytest.warns(MoleWarning, match=SECOND):
        deliver(data, make_layer(1), opened(key_path), tmp_path / "two", allow_second_layer=True)
    deliver(data, make_layer(1), opened(key_path), tmp_path / "more", dtype="int8")  # said once is enough
    layers = [entry.layer_fingerprint for entry in Ledger(make_key().fingerprint, key_path).entries()]
    assert sorted(layers) == sorted([ONE, ONE, TWO, TWO])


def test_requests_that_are_resized_in_another_way_are_remarked_upon(tmp_path):
    np.savez(tmp_path / "large.npz", x_train=np.zeros((4, 12, 10, 3), np.uint8))
    np.savez(tmp_path / "fits.npz", x_train=np.zeros((4, 8, 8, 3), np.uint8))
    made = deliver(tmp_path / "large.npz", make_layer(), make_key(), tmp_path / "d", resize="stretch")
    requests = {"layer_dtype": None, "labels": False}

    def morph(name: str, out: str, **options) -> None:
        deliver(tmp_path / name, make_layer(), make_key(), tmp_path / out, **requests, **options)

    morph("large.npz", "same", resize="stretch")  # a warning would be an error here
    morph("fits.npz", "none")
    with pytest.warns(MoleWarning, match="were resized by 'stretch' before, and now by 'crop': a network"):
        morph("large.npz", "other", resize="crop")
    ledger = Ledger(made.delivery.manifest.key_fingerprint)
    assert [entry.resize for entry in ledger.entries()].count(None) == 1
    assert ledger.other_resize(TWO, "stretch") is None  # nothing is known of that layer
    lines = [json.loads(line) for line in ledger.paths()[0].read_text().splitlines()]
    assert ["resize" in line for line in lines].count(False) == 1  # as every entry was before


def test_a_copy_of_a_key_remembers_its_deliveries(key_path, tmp_path, data):
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copy(key_path, tmp_path / "elsewhere" / "renamed.key")
    with pytest.raises(DeliveryError, match=SECOND):
        deliver(data, make_layer(1), opened(copy), tmp_path / "two")


def test_a_key_that_moves_with_its_ledger_remembers_on_another_machine(
    key_path, tmp_path, data, monkeypatch
):
    monkeypatch.setenv(STATE, str(tmp_path / "another user"))
    with pytest.raises(DeliveryError, match=SECOND):
        deliver(data, make_layer(1), opened(key_path), tmp_path / "two")
    (key_path.parent / "my.key.ledger").unlink()  # the negative: nothing is known of it there
    deliver(data, make_layer(1), opened(key_path), tmp_path / "two")


def test_a_key_that_was_never_saved_is_remembered_too(tmp_path, data):
    deliver(data, make_layer(), make_key(), tmp_path / "one")
    with pytest.raises(DeliveryError, match=SECOND):
        deliver(data, make_layer(1), make_key(), tmp_path / "two")
    deliver(data, make_layer(1), make_key(1), tmp_path / "two")
    assert not list(tmp_path.glob("*.ledger"))


def test_what_both_ledgers_tell_counts_once(key_path, tmp_path, data):
    deliver(data, make_layer(), opened(key_path), tmp_path / "d")  # finished long ago
    ledger = Ledger(make_key().fingerprint, key_path)
    users, beside = ledger.paths()
    assert [len(path.read_text().splitlines()) for path in (users, beside)] == [1, 1]
    (entry,) = ledger.entries()
    assert (entry.layer_fingerprint, entry.rows) == (ONE, 20)


def test_only_its_owner_reads_it(key_path):
    users, beside = Ledger(make_key().fingerprint, key_path).paths()
    assert [path.stat().st_mode & 0o777 for path in (users, beside)] == [0o600, 0o600]
    assert [folder.stat().st_mode & 0o777 for folder in (users.parent, users.parent.parent)] == [0o700] * 2


def test_a_key_file_that_was_replaced_is_noticed(key_path, tmp_path, data):
    key_path.unlink()
    make_key(1).save(key_path, recipients=[str(IDENTITY.to_public())])
    before, now = make_key().fingerprint, make_key(1).fingerprint
    with pytest.warns(
        MoleWarning, match=rf"my\.key is not the key .*: its fingerprint was {before} and is {now}"
    ):
        deliver(data, make_layer(1), opened(key_path), tmp_path / "two")
    deliver(data, make_layer(1), opened(key_path), tmp_path / "two")  # seen once
    assert [entry.layer_fingerprint for entry in Ledger(now, key_path).entries()] == [TWO]


def test_one_ledger_is_enough_and_none_is_an_error(key_path, tmp_path, data, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv(STATE, str(tmp_path / "file"))
    with pytest.warns(MoleWarning, match="file/ledgers/.*cannot be "):
        deliver(data, make_layer(), opened(key_path), tmp_path / "one", dtype="int8")
    assert len(read_ledger(key_path)) == 2
    with pytest.raises(DeliveryError, match="the delivery is made, but no ledger records it"):
        deliver(data, make_layer(), make_key(), tmp_path / "two")


def test_where_the_users_own_lies(monkeypatch, tmp_path):
    monkeypatch.setenv(STATE, "here")
    monkeypatch.chdir(tmp_path)
    assert state_folder() == tmp_path / "here"
    monkeypatch.delenv(STATE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder() == tmp_path / "state" / "mole"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")  # to be ignored, by its specification
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "mole"


@pytest.mark.parametrize("fingerprint", ["", "0" * 31, "../" * 10 + "ab", "0" * 32 + "\n"])
def test_no_fingerprint_leads_out_of_the_folder(fingerprint):
    with pytest.raises(ParameterError, match="32 hexadecimal digits"):
        Ledger(fingerprint)


def test_a_new_key_is_told_of_earlier_ones(key_path):
    (same,) = keygen_warnings(key_path, ONE)
    assert "data for this first layer was delivered under my.key before" in same
    (other,) = keygen_warnings(key_path, TWO)
    assert "an earlier key of this name, used for another first layer" in other
    (elsewhere,) = keygen_warnings(key_path.with_name("new.key"), ONE)
    assert elsewhere == same
    assert keygen_warnings(key_path.with_name("new.key"), TWO) == []


def test_other_files_called_ledger_do_no_harm(key_path):
    (key_path.parent / "accounts.ledger").write_text("2026-01-01 opening balance\n")
    assert keygen_warnings(key_path.with_name("new.key"), TWO) == []
    entry = json.loads((key_path.parent / "my.key.ledger").read_text())
    for damage in (
        {"date": "today"},
        {**entry, "rows": "20"},
        {**entry, "resize": 5},
        {**entry, "delivery_id": None},
        {**entry, "place": 5},
        {**entry, "sealed_for": [5]},
        [entry],
        5,
    ):
        (key_path.parent / "my.key.ledger").write_text(json.dumps(damage))
        with pytest.raises(DeliveryError, match=r"my\.key\.ledger is damaged"):
            keygen_warnings(key_path, TWO)


def test_a_key_remembers_the_file_that_it_was_first_saved_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    key = make_key()
    assert key.path is None
    for name in ("my.key", "backup.key"):
        key.save(name, recipients=[str(IDENTITY.to_public())])
    assert key.path == tmp_path / "my.key"
    assert mole.MorphKey.load("backup.key", identities=[str(IDENTITY)]).path == tmp_path / "backup.key"
