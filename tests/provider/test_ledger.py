"""The ledger beside a key: whose deliveries it tells of, and what it warns of."""

import json
from pathlib import Path

import pyrage
import pytest

import mole
from deliveries import make_key, make_layer, write_npz
from mole.errors import DeliveryError, MoleWarning
from mole.provider.deliver import deliver
from mole.provider.ledger import delivery_warnings, keygen_warnings, read_ledger, record
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

IDENTITY = pyrage.x25519.Identity.generate()
ONE, TWO = make_layer().fingerprint, make_layer(1).fingerprint


@pytest.fixture
def key_path(tmp_path) -> Path:
    """A key's path; a delivery for the first layer was made under it."""
    source = open_source(str(write_npz(tmp_path / "data.npz", train=20, test=0)))
    made = deliver(source, make_layer(), make_key(), LocalStore(tmp_path / "d"))
    (tmp_path / "keys").mkdir()
    record(tmp_path / "keys" / "my.key", made.delivery.manifest, ["photos/3.png"])
    return tmp_path / "keys" / "my.key"


def test_it_keeps_what_was_left_out(key_path):
    (entry,) = read_ledger(key_path)
    assert (entry.rows, entry.skipped) == (20, ("photos/3.png",))
    assert json.loads((key_path.parent / "my.key.ledger").read_text())["skipped"] == ["photos/3.png"]


def test_a_second_developer_is_warned_of(key_path):
    used = make_key().fingerprint
    assert delivery_warnings(key_path, used, ONE) == []
    (warning,) = delivery_warnings(key_path, used, TWO)
    assert "used for another first layer before" in warning


def test_the_ledger_of_an_earlier_key_of_that_name_is_not_this_keys(key_path):
    assert delivery_warnings(key_path, make_key(1).fingerprint, TWO) == []


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
    (key_path.parent / "my.key.ledger").write_text('{"date": "today"}\n')
    with pytest.raises(DeliveryError, match=r"my\.key\.ledger is damaged"):
        keygen_warnings(key_path, TWO)


def test_a_call_from_python_keeps_the_ledger_and_warns(tmp_path):
    """What the command does for a person at the terminal, the library does for everybody."""
    data, key = write_npz(tmp_path / "data.npz", train=20, test=0), make_key()
    deliver(data, make_layer(), key, tmp_path / "unsaved")
    assert not list(tmp_path.glob("*.ledger"))
    key.save(tmp_path / "my.key", recipients=[str(IDENTITY.to_public())])
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    for _ in range(2):
        deliver(str(data), tmp_path / "layer.safetensors", key, str(tmp_path / "one"))
    loaded = mole.MorphKey.load(tmp_path / "my.key", identities=[str(IDENTITY)])
    with pytest.warns(MoleWarning, match="used for another first layer before"):
        deliver(data, make_layer(1), loaded, tmp_path / "two")
    assert [entry.layer_fingerprint for entry in read_ledger(tmp_path / "my.key")] == [ONE, TWO]


def test_a_key_remembers_the_file_that_it_was_first_saved_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    key = make_key()
    assert key.path is None
    for name in ("my.key", "backup.key"):
        key.save(name, recipients=[str(IDENTITY.to_public())])
    assert key.path == tmp_path / "my.key"
    assert mole.MorphKey.load("backup.key", identities=[str(IDENTITY)]).path == tmp_path / "backup.key"
