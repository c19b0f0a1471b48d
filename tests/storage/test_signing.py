"""Signatures: OpenSSH accepts ours, we accept OpenSSH's, and nobody accepts anything else."""

import base64
import shutil
import subprocess

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mole.errors import FileError, KeyFileError, ParameterError
from mole.storage import signing
from mole.storage.signers import read_signers
from mole.storage.signing import Signature, SigningKey
from secrets_kept import ssh_key

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
CONTENT, SPACE = b"what is signed\n", "mole-delivery"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("keys")
    public = ssh_key(made / "provider").with_name("provider.pub").read_text()
    ssh_key(made / "other")
    (made / "allowed").write_text(f"# ours\nprovider@example.org {public}")
    (made / "content").write_bytes(CONTENT)
    return made


@pytest.fixture(scope="module")
def key(folder):
    return SigningKey.load(folder / "provider")


def accepted_by_openssh(folder, text: str, content: bytes = CONTENT, space: str = SPACE) -> bool:
    (folder / "signature").write_text(text)
    command = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "provider@example.org", "-n", space]
    done = subprocess.run(
        [*command, "-s", "signature"], cwd=folder, input=content, capture_output=True, check=False
    )
    return done.returncode == 0


def test_openssh_accepts_ours_and_nothing_else(folder, key):
    ours = key.sign(CONTENT, SPACE)
    assert accepted_by_openssh(folder, ours)
    assert not accepted_by_openssh(folder, ours, content=CONTENT + b"!")
    assert not accepted_by_openssh(folder, ours, space="file")
    assert not accepted_by_openssh(folder, SigningKey.load(folder / "other").sign(CONTENT, SPACE))


@pytest.mark.parametrize("options", [[], ["-O", "hashalg=sha256"]])
def test_we_accept_openssh_s(folder, key, options):
    command = ["ssh-keygen", "-Y", "sign", "-f", "provider", "-n", SPACE, *options, "content"]
    (folder / "content.sig").unlink(missing_ok=True)
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    signature = Signature.parse((folder / "content.sig").read_bytes(), "content.sig")
    signature.check(CONTENT, SPACE)
    assert signature.fingerprint == key.fingerprint
    listed = subprocess.run(
        ["ssh-keygen", "-l", "-f", folder / "provider"], capture_output=True, check=True
    )
    assert key.fingerprint in listed.stdout.decode()


def test_another_content_or_namespace_is_refused(key):
    signature = Signature.parse(key.sign(CONTENT, SPACE), "a.sig")
    signature.check(CONTENT, SPACE)
    with pytest.raises(FileError, match=r"a\.sig is not a signature of this content"):
        signature.check(CONTENT + b"!", SPACE)
    with pytest.raises(
        FileError, match=r"a\.sig signs something else: its namespace is not mole-first-layer"
    ):
        signature.check(CONTENT, "mole-first-layer")


def test_every_changed_byte_is_refused(key):
    text = key.sign(CONTENT, SPACE)
    armour = text.splitlines()
    blob = base64.b64decode("".join(armour[1:-1]))
    for place in range(len(blob)):
        changed = base64.b64encode(blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :]).decode()
        with pytest.raises(FileError):
            Signature.parse("\n".join([armour[0], changed, armour[-1]]), "a.sig").check(CONTENT, SPACE)


@pytest.mark.parametrize("text", ["", "no signature", "-----BEGIN SSH SIGNATURE-----\n", "\0" * 99])
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(FileError, match=r"a\.sig is not a signature of OpenSSH's"):
        Signature.parse(text, "a.sig")


def test_a_key_with_a_passphrase_asks_for_it(tmp_path):
    pytest.importorskip("bcrypt", reason="needs bcrypt")
    path = ssh_key(tmp_path / "key", passphrase="a secret")
    assert "SHA256:" in SigningKey.load(path, lambda: "a secret").fingerprint
    for wrong in ("another", ""):
        with pytest.raises(KeyFileError, match="the passphrase is wrong") as caught:
            SigningKey.load(path, wrong)
        assert "another" not in str(caught.value)
    with pytest.raises(KeyFileError, match="is protected by a passphrase"):
        SigningKey.load(path)


def test_a_kind_of_key_that_is_not_supported_says_which_to_make(folder, tmp_path, monkeypatch):
    def load(content, passphrase):
        raise UnsupportedAlgorithm("sk-ssh-ed25519")

    monkeypatch.setattr(signing, "load_ssh_private_key", load)
    with pytest.raises(KeyFileError, match="cannot be used here: make a key with ssh-keygen -t ed25519"):
        SigningKey.load(folder / "provider")


def test_what_is_no_signing_key_is_refused(tmp_path, folder):
    (tmp_path / "text").write_text("no key")
    for path, says in {
        tmp_path / "nowhere": "cannot be read",
        tmp_path / "text": "is not an OpenSSH private key",
        folder / "provider.pub": "is not an OpenSSH private key",
        ssh_key(tmp_path / "rsa", kind="ecdsa"): "is not an Ed25519 key: make one",
    }.items():
        with pytest.raises(KeyFileError, match=says):
            SigningKey.load(path)


def test_signers_are_a_key_its_file_or_a_file_of_allowed_signers(folder, tmp_path):
    public = (folder / "provider.pub").read_text()
    other = (folder / "other.pub").read_text()
    (tmp_path / "several").write_text(
        f'"a b@c",*@d namespaces="mole-*,file" {public}\n\nx ssh-rsa AAAA\ny {other}'
    )
    (own,) = read_signers(folder / "provider.pub")
    assert read_signers(public) == read_signers(folder / "allowed") == [own]
    several = read_signers(tmp_path / "several")
    assert (several[0].public, len(several)) == (own.public, 2)
    assert several[0].may_sign("mole-delivery")
    assert not several[0].may_sign("git")
    assert own.may_sign("git")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('a valid-before="20200101" {}', "options that are not known here"),
        ("a cert-authority {}", "options that are not known here"),
        ('a namespaces="*,!mole-delivery" {}', "options that are not known here"),
        ("a ssh-ed25519 ????", "a public key that cannot be read"),
        ("ssh-rsa AAAA", "no Ed25519 public key"),
        ("", "no Ed25519 public key"),
    ],
)
def test_limits_that_we_do_not_know_are_not_passed_over(folder, tmp_path, line, says):
    (tmp_path / "signers").write_text(line.format((folder / "provider.pub").read_text()))
    with pytest.raises(FileError, match=says):
        read_signers(tmp_path / "signers")


def test_a_private_key_is_not_taken_for_a_public_one(folder):
    with pytest.raises(ParameterError, match="is a private key: give the public one"):
        read_signers(folder / "provider")


def test_a_signing_key_does_not_show_itself(key):
    private = SigningKey(Ed25519PrivateKey.from_private_bytes(b"s" * 32))
    assert "ssss" not in repr(private)
    assert repr(key) == f"SigningKey({key.fingerprint})"
