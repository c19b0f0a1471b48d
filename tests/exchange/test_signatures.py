"""Who made a delivery, or a first layer: signatures that speak for all of it."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

import mole
from deliveries import SMALL, contents, make_key, make_layer, write_npz
from mole.errors import DeliveryError, FileError
from mole.exchange.signatures import (
    DELIVERY,
    FIRST_LAYER,
    check_delivery,
    load_signed_layer,
    sign_delivery,
    sign_layer,
)
from mole.provider.deliver import deliver
from mole.storage.signing import Signature, SigningKey
from mole.storage.stores import LocalStore
from secrets_kept import DEVELOPER, RECIPIENT, ssh_key

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two key pairs, data, and a signed delivery."""
    folder = tmp_path_factory.mktemp("signed")
    ssh_key(folder / "provider")
    ssh_key(folder / "other")
    write_npz(folder / "data.npz")
    deliver(
        folder / "data.npz",
        make_layer(),
        make_key(),
        folder / "delivery",
        sign=folder / "provider",
        **SMALL,
    )
    return folder


@pytest.fixture
def copy(place, tmp_path):
    return shutil.copytree(place / "delivery", tmp_path / "copy")


def signature_of(folder, **options):
    checks = {check.what: check for check in mole.verify(folder, **options)}
    assert all(check.holds for name, check in checks.items() if name != "signature")
    return checks["signature"]


def test_verify_tells_who_signed(place):
    fingerprint = SigningKey.load(place / "provider").fingerprint
    for signer in (place / "provider.pub", (place / "provider.pub").read_text()):
        check = signature_of(place / "delivery", signer=signer)
        assert (check.holds, check.detail) == (True, f"signed by {fingerprint}")
    check = signature_of(place / "delivery")  # by somebody: anybody can make a key and sign with it
    assert check.holds is None
    assert check.detail.startswith(f"signed by {fingerprint}; give the signer")


def test_openssh_verifies_it(place, tmp_path):
    (tmp_path / "allowed").write_text(f"provider {(place / 'provider.pub').read_text()}")
    folder = place / "delivery"
    command = ["ssh-keygen", "-Y", "verify", "-f", tmp_path / "allowed", "-I", "provider", "-n", DELIVERY]
    subprocess.run(
        [*command, "-s", folder / "manifest.json.sig"],
        input=(folder / "manifest.json").read_bytes(), check=True, capture_output=True,
    )  # fmt: skip


def test_another_signer_is_refused(place):
    checks = mole.verify(place / "delivery", signer=place / "other.pub")
    assert [check.what for check in checks] == ["manifest", "signature"]  # no shard of it is parsed
    check = checks[-1]
    assert check.holds is False
    assert "which is not the key you expect" in check.detail


def test_a_changed_manifest_is_refused(place, copy):
    """Whoever changes it can make its checksum right again, and not its signature."""
    manifest = mole.Delivery.open(copy).manifest
    manifest.write(LocalStore(copy))
    assert signature_of(copy, signer=place / "provider.pub").holds  # the same manifest
    opened = mole.Delivery.open(copy)
    path = copy / "manifest.json"
    changed = path.read_bytes().replace(b'"delivery_id": "', b'"delivery_id": "0')
    path.write_bytes(changed)
    with pytest.raises(DeliveryError, match="its checksum does not match"):
        mole.verify(copy)
    with pytest.raises(FileError, match=r"manifest\.json\.sig is not a signature of this content"):
        check_delivery(replace(opened, opened_as=changed))


def test_the_signature_is_checked_on_the_manifest_in_use(place, copy):
    """Somebody puts the signed manifest back while a forged one is in use, and the other way round."""
    path, signer = copy / "manifest.json", place / "provider.pub"
    good, opened = path.read_bytes(), mole.Delivery.open(copy)
    replace(opened.manifest, classes=("forged",) * 10).write(LocalStore(copy))
    bad, forged = path.read_bytes(), mole.Delivery.open(copy)
    path.write_bytes(good)
    assert forged.manifest.classes == ("forged",) * 10
    check = mole.verify(forged, signer=signer)[-1]
    assert (check.what, check.holds) == ("signature", False)
    path.write_bytes(bad)
    assert check_delivery(opened, signer).startswith("signed by")


def test_a_delivery_made_here_is_checked_against_what_lies_there(place, tmp_path):
    arguments = (place / "data.npz", make_layer(), make_key(), tmp_path / "d")
    made = deliver(*arguments, sign=place / "provider", **SMALL).delivery
    assert signature_of(made, signer=place / "provider.pub").holds
    replace(made.manifest, tool="forged").write(made.store)
    sign_delivery(made.store, SigningKey.load(place / "provider"))
    check = mole.verify(made, signer=place / "provider.pub")[-1]
    assert not check.holds
    assert "has changed since the delivery was opened: open the delivery again" in check.detail


def test_a_manifest_that_somebody_else_wrote_is_refused(place, copy):
    content = json.loads((copy / "manifest.json").read_text())
    manifest = mole.Delivery.open(copy).manifest
    object.__setattr__(manifest, "tool", "somebody else's")
    manifest.write(LocalStore(copy))
    assert json.loads((copy / "manifest.json").read_text()) != content
    check = signature_of(copy)
    assert not check.holds
    assert "is not a signature of this content: it was changed" in check.detail


def test_a_signature_of_something_else_is_refused(place, copy):
    text = SigningKey.load(place / "provider").sign((copy / "manifest.json").read_bytes(), FIRST_LAYER)
    (copy / "manifest.json.sig").write_text(text)
    check = signature_of(copy, signer=place / "provider.pub")
    assert not check.holds
    assert "signs something else" in check.detail


def test_what_is_not_signed_is_said_to_be(place, copy):
    (copy / "manifest.json.sig").unlink()
    checks = mole.verify(copy)
    assert "signature" not in [check.what for check in checks]  # nothing was checked, nothing is claimed
    assert all(check.holds for check in checks)
    check = signature_of(copy, signer=place / "provider.pub")
    assert not check.holds
    assert "is not signed: ask its sender to sign it" in check.detail


def test_a_finished_delivery_can_be_signed_later(place, copy):
    before = contents(copy)
    (copy / "manifest.json.sig").unlink()
    arguments = (place / "data.npz", make_layer(), make_key(), copy)
    deliver(*arguments, sign=place / "provider", **SMALL)
    assert contents(copy) == before


def test_a_sealed_delivery_is_signed_and_hides_by_whom(place, tmp_path):
    out = tmp_path / "sealed"
    arguments = (place / "data.npz", make_layer(), make_key(), out)
    deliver(*arguments, sign=place / "provider", recipients=[RECIPIENT], **SMALL)
    assert (out / "manifest.json.sig.age").exists()
    assert b"BEGIN SSH" not in (out / "manifest.json.sig.age").read_bytes()
    signer = place / "provider.pub"
    assert signature_of(out, identity=str(DEVELOPER), signer=signer).holds
    assert not signature_of(out, identity=str(DEVELOPER), signer=place / "other.pub").holds


def test_a_first_layer_is_signed(place, tmp_path):
    path, key = tmp_path / "layer.safetensors", SigningKey.load(place / "provider")
    mole.save(make_layer(), path)
    assert load_signed_layer(path)[1] == "not signed"
    with pytest.raises(FileError, match=r"layer\.safetensors is not signed"):
        load_signed_layer(path, place / "provider.pub")
    assert sign_layer(path, key) == tmp_path / "layer.safetensors.sig"
    layer, told = load_signed_layer(path, place / "provider.pub")
    assert (layer.fingerprint, told) == (make_layer().fingerprint, f"signed by {key.fingerprint}")
    with pytest.raises(FileError, match="which is not the key you expect"):
        load_signed_layer(path, place / "other.pub")
    mole.save(make_layer(1), path)
    with pytest.raises(FileError, match="is not a signature of this content"):
        load_signed_layer(path, place / "provider.pub")


def test_the_layer_in_use_is_the_one_whose_signature_was_checked(place, tmp_path, monkeypatch):
    """Another layer lies there as soon as the signature was checked."""
    path = tmp_path / "layer.safetensors"
    mole.save(make_layer(), path)
    sign_layer(path, SigningKey.load(place / "provider"))
    check = Signature.check

    def check_and_swap(signature, *given):
        check(signature, *given)
        mole.save(make_layer(1), path)

    monkeypatch.setattr(Signature, "check", check_and_swap)
    layer, _ = load_signed_layer(path, place / "provider.pub")
    assert layer.fingerprint == make_layer().fingerprint != mole.load(path).fingerprint


def test_a_signed_file_that_is_no_layer_is_named(place, tmp_path):
    path = tmp_path / "layer.safetensors"
    path.write_bytes(b"nothing of the kind")
    sign_layer(path, SigningKey.load(place / "provider"))
    with pytest.raises(FileError, match=re.escape(f"{path} is not a layer file")):
        load_signed_layer(path, place / "provider.pub")
