"""Sealed deliveries: recipient and provider open them, a stranger does not, and no disk sees them clear."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mole
from deliveries import SMALL, contents, make_key, make_layer
from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.provider.recover import recover, row_table
from mole.provider.sealing import own_identity
from mole.storage.locks import LOCK
from secrets_kept import DEVELOPER, RECIPIENT, STRANGER, sealed_files, ssh_key, watched

SEALED = {**SMALL, "recipients": [RECIPIENT]}

IDENTITY = str(DEVELOPER)


# What no file on a disk may show: Parquet, a manifest, a header of safetensors, a card, the marker.
CLEAR = (b"PAR1", b"mole-delivery", b"__metadata__", b"# Morphed data", b"delivery_id")


def test_the_recipient_reads_everything(made):
    delivery = Delivery.open(made, identity=IDENTITY)
    assert delivery.is_sealed
    assert delivery.manifest.rows == 130
    assert delivery.layer() is not None
    checks = mole.verify(made, identity=IDENTITY)
    assert [check.what for check in checks if not check.holds] == []
    assert len(checks) == 5
    assert delivery.damaged() == []


def test_every_file_is_sealed_and_none_shows_anything(made):
    assert all(name.endswith(".age") for name in sealed_files(made))
    assert "manifest.json.age" in sealed_files(made)
    for content in contents(made).values():
        assert content.startswith(b"age-encryption.org/v1\n")
        assert not any(mark in content for mark in CLEAR)


def test_a_stranger_gets_one_sentence(made):
    with pytest.raises(DeliveryError, match=r"delivery is sealed: give identity=\.\.\.$"):
        Delivery.open(made)
    with pytest.raises(DeliveryError, match=r"manifest\.json\.age is sealed for somebody else"):
        Delivery.open(made, identity=str(STRANGER))


def test_the_provider_opens_it_with_the_key_alone(made, data):
    arrays = recover(made, make_key())
    with np.load(data) as plain:
        assert np.abs(arrays["x_train"].transpose(0, 2, 3, 1).astype(int) - plain["x_train"]).max() <= 6
        assert np.array_equal(arrays["y_train"], plain["y_train"])
    assert row_table(made, make_key()).num_rows == 130
    with pytest.raises(DeliveryError, match="delivery is not sealed for this key: use the key it was"):
        recover(made, make_key(1))
    with pytest.raises(DeliveryError, match="was made with key"):
        recover(made, make_key(1), identity=IDENTITY)


def test_an_audit_needs_the_key_alone(made):
    with pytest.warns(MoleWarning, match="No source was given"):
        report = mole.audit(made, key=make_key(), budget=0)
    assert report.subject["rows"].startswith("130")
    with pytest.raises(DeliveryError, match="is sealed: give identity="):
        mole.audit(made)


def test_the_provider_s_identity_is_another_for_each_key():
    assert own_identity(make_key(0)) == own_identity(make_key(0)) != own_identity(make_key(1))


def test_it_holds_the_same_as_an_open_one(made, data, tmp_path):
    """But for row ids and order, which are each delivery's own."""
    open_one = deliver(data, make_layer(), make_key(), tmp_path / "d", dtype="int8", **SMALL).delivery
    sealed = Delivery.open(made, identity=IDENTITY)
    assert set(open_one.manifest.files) == set(sealed.manifest.files)
    assert open_one.manifest.delivery_id != sealed.manifest.delivery_id
    ours, theirs = recover(sealed, make_key()), recover(open_one, make_key())
    assert np.abs(ours["x_train"].astype(int) - theirs["x_train"]).max() <= 1  # 8 bits, other scales
    assert np.array_equal(sealed.layer().matrix, open_one.layer().matrix)


@pytest.mark.parametrize(
    "name", ["manifest.json", "data/train-00001-of-00007.parquet", "probes.safetensors"]
)
def test_damage_to_a_sealed_file_is_found(made, tmp_path, name):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", made, copy], check=True)
    file = copy / f"{name}.age"
    content = bytearray(file.read_bytes())
    content[-40] ^= 1
    file.write_bytes(content)
    if name == "manifest.json":
        with pytest.raises(DeliveryError, match=r"copy/manifest\.json\.age is damaged"):
            mole.verify(copy, identity=IDENTITY)
        return
    wrong = [check for check in mole.verify(copy, identity=IDENTITY) if not check.holds]
    assert [check.what for check in wrong] == ["files"]
    assert f"{name}.age is damaged" in wrong[0].detail
    if name.startswith("data"):
        with pytest.raises(DeliveryError, match=rf"{name}\.age is damaged"):
            list(Delivery.open(copy, identity=IDENTITY).shards("train"))


def test_a_file_from_another_delivery_to_the_same_recipient_is_found(made, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", made, copy], check=True)
    (copy / "README.md.age").write_bytes((copy / "probes.safetensors.age").read_bytes())
    (copy / "planted.age").write_bytes((copy / "probes.safetensors.age").read_bytes())
    (copy / "clear").write_bytes(b"planted")
    (files,) = [check for check in mole.verify(copy, identity=IDENTITY) if not check.holds]
    assert files.detail == "clear does not belong here; planted does not belong here; README.md is damaged"


def test_a_clear_manifest_beside_a_sealed_one_is_refused(made, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", made, copy], check=True)
    (copy / "manifest.json").write_text("{}")
    with pytest.raises(DeliveryError, match=r"holds both manifest\.json and manifest\.json\.age"):
        Delivery.open(copy, identity=IDENTITY)


@pytest.mark.parametrize("recipients", ["age1abc", ["age1abc"], [str(DEVELOPER)]])
def test_a_bad_recipient_is_refused_before_any_work_and_never_shown(tmp_path, recipients):
    with pytest.raises(ParameterError, match="recipient") as caught:
        deliver(
            tmp_path / "nowhere", tmp_path / "nowhere", make_key(), tmp_path / "d", recipients=recipients
        )
    assert "AGE-SECRET" not in str(caught.value)
    assert not (tmp_path / "d").exists()


def test_an_ssh_key_opens_it(data, tmp_path):
    key = ssh_key(tmp_path / "developer")
    public = key.with_name("developer.pub").read_text()
    deliver(data, make_layer(), make_key(), tmp_path / "d", recipients=[public], **SMALL)
    assert all(check.holds for check in mole.verify(tmp_path / "d", identity=key))


AGE = b"age-encryption.org/v1\n"


# No file gets its last name before the watch, which gives each a second one, has seen it under its first.
PROGRAM = """
import json, os, sys, time
tests, data, out, recipients, identity = sys.argv[1:]
def wait_to_be_seen(event, about):
    moved = str(about[0]) if event in ("os.rename", "os.link") else ""
    while moved.startswith(os.getcwd()) and os.path.isfile(moved) and os.stat(moved).st_nlink < 2:
        time.sleep(0.001)
sys.addaudithook(wait_to_be_seen)
sys.path.insert(0, tests)
import mole
from deliveries import make_key, make_layer
options = dict(dtype="int8", rows_per_shard=40, recipients=json.loads(recipients))
mole.deliver(data, make_layer(), make_key(), out, **options)
assert all(check.holds for check in mole.verify(out, identity=identity))
delivery = mole.Delivery.open(out, identity=identity)
assert delivery.layer() is not None and list(delivery.shards("train"))
mole.recover(out, make_key())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")
@pytest.mark.parametrize("recipients", [[RECIPIENT], []])
def test_nothing_clear_touches_the_disk(data, tmp_path, recipients):
    """Any file that both roles write, however short its life; the open twin shows that the watch sees."""
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    arguments = [
        str(Path(__file__).parents[1] / "support"),
        data,
        root / "d",
        json.dumps(recipients),
        IDENTITY,
    ]
    variables = {"TMPDIR": str(root / "tmp"), "HOME": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    with watched(root, tmp_path / "kept") as watch:
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            cwd=root, env={**os.environ, **variables}, check=True,
        )  # fmt: skip
    written = watch.contents()
    assert len({path for path in watch.seen if path.name.endswith(".part")}) == 10  # all that are written
    showing = [
        path for path, content in zip(watch.seen, written, strict=True) if any(map(content.count, CLEAR))
    ]
    if recipients:
        assert showing == []
        files = zip(watch.seen, written, strict=True)
        clear = [path for path, content in files if content and not content.startswith(AGE)]
        assert {path.name for path in clear} <= {LOCK}  # which says who is at work, and nothing else
    else:
        assert {".part", ".parquet", ".json", ".safetensors"} <= {path.suffix for path in showing}
