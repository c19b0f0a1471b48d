"""Who made a delivery, or a first layer: signatures that speak for all of it."""

import json
import shutil
import subprocess

import pytest

import mole
from deliveries import SMALL, contents, make_key, make_layer, write_npz
from mole.errors import DeliveryError, FileError
from mole.exchange.signatures import DELIVERY, FIRST_LAYER, check_delivery, check_layer, sign_layer
from mole.provider.deliver import deliver
from mole.storage.signing import SigningKey
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
    for options in (
        {},
        {"signer": place / "provider.pub"},
        {"signer": (place / "provider.pub").read_text()},
    ):
        check = signature_of(place / "delivery", **options)
        assert (check.holds, check.detail) == (True, f"signed by {fingerprint}")


def test_openssh_verifies_it(place, tmp_path):
    (tmp_path / "allowed").write_text(f"provider {(place / 'provider.pub').read_text()}")
    folder = place / "delivery"
    command = ["ssh-keygen", "-Y", "verify", "-f", tmp_path / "allowed", "-I", "provider", "-n", DELIVERY]
    subprocess.run(
        [*command, "-s", folder / "manifest.json.sig"],
        input=(folder / "manifest.json").read_bytes(), check=True, capture_output=True,
    )  # fmt: skip


def test_another_signer_is_refused(place):
    check = signature_of(place / "delivery", signer=place / "other.pub")
    assert not check.holds
    assert "who is not the signer you expect" in check.detail


def test_a_changed_manifest_is_refused(place, copy):
    """Whoever changes it can make its checksum right again, and not its signature."""
    manifest = mole.Delivery.open(copy).manifest
    manifest.write(LocalStore(copy))
    assert signature_of(copy).holds  # the same manifest
    path = copy / "manifest.json"
    changed = path.read_bytes().replace(b'"delivery_id": "', b'"delivery_id": "0')
    path.write_bytes(changed)
    with pytest.raises(DeliveryError, match="its checksum does not match"):
        mole.verify(copy)
    store = LocalStore(copy)
    with pytest.raises(FileError, match=r"manifest\.json\.sig is not a signature of this content"):
        check_delivery(store)


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
    check = signature_of(copy)
    assert (check.holds, check.detail) == (True, "not signed")
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
    assert check_layer(path) == "not signed"
    with pytest.raises(FileError, match=r"layer\.safetensors is not signed"):
        check_layer(path, place / "provider.pub")
    assert sign_layer(path, key) == tmp_path / "layer.safetensors.sig"
    assert check_layer(path, place / "provider.pub") == f"signed by {key.fingerprint}"
    with pytest.raises(FileError, match="who is not the signer you expect"):
        check_layer(path, place / "other.pub")
    mole.save(make_layer(1), path)
    with pytest.raises(FileError, match="is not a signature of this content"):
        check_layer(path, place / "provider.pub")
