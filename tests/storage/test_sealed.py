"""A sealed store: files that only their recipients can read."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mole.errors import DeliveryError, KeyFileError, ParameterError
from mole.storage.age import decrypt, encrypt
from mole.storage.age_keys import parse_identities
from mole.storage.checked import load_checked, write_checked
from mole.storage.identities import identity_texts, recipient_texts
from mole.storage.sealed import SealedStore
from mole.storage.stores import LocalStore, digest_of, stored_file
from secrets_kept import DEVELOPER, RECIPIENT, STRANGER, ssh_key

CONTENT = bytes(range(256)) * 1000


def damage(path):
    *whole, last = path.read_bytes()
    path.write_bytes(bytes([*whole, last ^ 1]))


@pytest.fixture
def store(tmp_path):
    return SealedStore(LocalStore(tmp_path / "d"), identities=[str(DEVELOPER)], recipients=[RECIPIENT])


def test_what_is_written_is_read_and_lies_there_encrypted(store):
    store.write("data/one", CONTENT)
    store.make("two", lambda path: path.write_bytes(CONTENT))
    assert store.names() == {"data/one", "two"}
    assert store.read("data/one") == store.read("two") == CONTENT
    assert digest_of(store, "two")[1] == len(CONTENT)
    assert store.inner.names() == {"data/one.age", "two.age"}
    assert CONTENT[:64] not in store.inner.read("data/one.age") + store.inner.read("two.age")
    store.remove("two")
    assert store.names() == {"data/one"}


def test_checked_files_are_written_and_read_in_memory(store):
    tensors = {
        "one": np.arange(6.0).reshape(2, 3),
        "two": np.array([True, False]),
        "none": np.zeros((0, 4)),
    }
    store.make("layer", lambda path: write_checked(path, tensors, {"format": "x"}))
    found, metadata = load_checked(stored_file(store, "layer"))
    assert metadata == {"format": "x"}
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in tensors.items()
    }


@pytest.mark.parametrize("identity", [STRANGER, None])
def test_a_stranger_reads_nothing(store, identity):
    store.write("one", CONTENT)
    other = SealedStore(store.inner, identities=[] if identity is None else [str(identity)])
    with pytest.raises(
        DeliveryError, match=r"d/one\.age is sealed for somebody else: use the identity"
    ) as caught:
        other.read("one")
    assert "AGE-SECRET" not in str(caught.value)
    assert other.names() == {"one"}


def test_damage_names_the_file(store):
    store.write("one", CONTENT)
    damage(store.inner.folder / "one.age")
    with pytest.raises(DeliveryError, match=r"d/one\.age is damaged: it does not decrypt"):
        store.read("one")


def test_a_clear_file_does_not_pass_for_a_sealed_one(store):
    store.write("one", CONTENT)
    (store.inner.folder / "one").write_bytes(b"planted")
    with pytest.raises(DeliveryError, match=r"holds both one and one\.age"):
        store.names()


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_ssh_keys_open_it_too(store, tmp_path, kind):
    key = ssh_key(tmp_path / "developer", kind=kind)
    recipient = key.with_name("developer.pub").read_text()
    writer = SealedStore(store.inner, identities=[str(DEVELOPER)], recipients=[RECIPIENT, recipient])
    writer.write("one", CONTENT)
    reader = SealedStore(store.inner, identities=identity_texts(key))
    assert reader.read("one") == CONTENT
    other = SealedStore(store.inner, identities=identity_texts(ssh_key(tmp_path / "other")))
    with pytest.raises(DeliveryError, match="is sealed for somebody else"):
        other.read("one")
    damage(store.inner.folder / "one.age")
    with pytest.raises(DeliveryError, match="is damaged"):
        reader.read("one")


def test_ssh_keys_alone_cannot_seal(store, tmp_path):
    key = ssh_key(tmp_path / "developer")
    recipient = key.with_name("developer.pub").read_text()
    writer = SealedStore(store.inner, identities=identity_texts(key), recipients=[recipient])
    with pytest.raises(DeliveryError, match="cannot be sealed with SSH keys alone: add an age identity"):
        writer.write("one", CONTENT)
    assert store.names() == set()


@pytest.mark.skipif(shutil.which("age") is None, reason="needs the program age")
def test_the_program_age_opens_each_file(store, tmp_path):
    store.write("one", CONTENT)
    (tmp_path / "identity").write_text(str(DEVELOPER))
    command = ["age", "--decrypt", "--identity", tmp_path / "identity", tmp_path / "d" / "one.age"]
    assert subprocess.run(command, check=True, capture_output=True).stdout == CONTENT


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize("form", ["OpenSSH", "PEM"])
def test_an_ssh_key_with_a_passphrase_is_refused_with_what_to_do(tmp_path, form):
    path = ssh_key(
        tmp_path / "locked", passphrase="secret words", kind="rsa" if form == "PEM" else "ed25519"
    )
    if form == "PEM":
        command = ["ssh-keygen", "-q", "-p", "-m", "PEM", "-P", "secret words", "-N", "secret words", "-f"]
        subprocess.run([*command, str(path)], check=True, capture_output=True)
    with pytest.raises(ParameterError, match=r"an SSH key with a passphrase cannot .*ssh-keygen -p"):
        identity_texts([path])
    command = ["ssh-keygen", "-q", "-p", "-P", "secret words", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    assert identity_texts([path]) == (path.read_text(),)
    lines = path.read_text().splitlines()
    damaged = "\n".join([*lines[:3], lines[-1]])
    with pytest.raises(ParameterError, match="an identity cannot be read"):
        identity_texts([damaged])


@pytest.mark.parametrize(
    ("identity", "error", "says"),
    [
        ("nowhere.txt", KeyFileError, r"nowhere\.txt cannot be read"),
        ("AGE-SECRET-KEY-1QQQQ", ParameterError, "^an identity cannot be read: .* RSA[)]$"),
    ],
)
def test_a_bad_identity_is_refused_and_never_shown(identity, error, says):
    with pytest.raises(error, match=says) as caught:
        identity_texts([identity])
    assert "QQQQ" not in str(caught.value)


def test_the_wrong_half_of_a_key_is_called_that_and_never_shown(tmp_path):
    private = ssh_key(tmp_path / "developer")
    public = tmp_path / "developer.pub"
    age_public, age_secret = tmp_path / "recipient.txt", tmp_path / "identity.txt"
    age_public.write_text(f"{RECIPIENT}\n")
    age_secret.write_text(f"# public key: {RECIPIENT}\n{DEVELOPER}\n")
    for text in (age_secret.read_text(), str(DEVELOPER), str(DEVELOPER).lower(), private.read_text()):
        with pytest.raises(ParameterError, match="which stays with its owner: give ") as caught:
            recipient_texts([RECIPIENT, text])
        assert text.strip().splitlines()[-1][-20:] not in str(caught.value)
    for file in (age_public, public):
        with pytest.raises(ParameterError, match=f"^{file}: this is the public half of a key"):
            identity_texts([age_secret, file])
        with pytest.raises(
            ParameterError, match=r"a recipient is a text, and \S+ is a file: give its contents"
        ):
            recipient_texts([file])
        with pytest.raises(ParameterError, match=r"an identity cannot be read: .*, not its path$"):
            parse_identities(str(file))
    age_public.write_text("# nothing but a remark\n")
    with pytest.raises(ParameterError, match=r"recipient\.txt: an identity cannot be read"):
        identity_texts(age_public)
    assert identity_texts([age_secret, private]) == (age_secret.read_text(), private.read_text())


def test_what_is_said_of_ssh_keys_is_what_is_taken(tmp_path):
    for kind, is_taken in (("ed25519", True), ("rsa", True), ("ecdsa", False)):
        private = ssh_key(tmp_path / kind, kind=kind)
        public = (tmp_path / f"{kind}.pub").read_text()
        if is_taken:
            assert recipient_texts([public]) == (" ".join(public.split()[:2]),)
            assert identity_texts(private)
            continue
        with pytest.raises(ParameterError, match=r"expected .* public key \(ssh-ed25519 or ssh-rsa\)$"):
            recipient_texts([public])
        with pytest.raises(ParameterError, match=r"SSH private key \(Ed25519 or RSA\)$"):
            identity_texts(private)


@pytest.mark.parametrize(
    "alone",
    [RECIPIENT, RECIPIENT.encode(), Path("recipient.txt"), ""],
    ids=["text", "bytes", "path", "nothing"],
)
def test_a_recipient_by_itself_is_no_list_of_letters(tmp_path, alone):
    ways = [
        lambda: recipient_texts(alone),
        lambda: encrypt(b"x", passphrase=None, recipients=alone, armoured=False),
        lambda: encrypt(b"x", passphrase="and a passphrase", recipients=alone, armoured=False),
        lambda: SealedStore(LocalStore(tmp_path), identities=[str(DEVELOPER)], recipients=alone),
    ]
    for way in ways:
        with pytest.raises(ParameterError, match="recipients are a list, and one by itself was given: put"):
            way()
    assert recipient_texts([RECIPIENT]) == (RECIPIENT,)


def test_nor_is_an_identity(store):
    sealed = encrypt(b"x", passphrase=None, recipients=[RECIPIENT], armoured=False)
    assert decrypt(sealed, passphrase=None, identities=[str(DEVELOPER)], name="it") == b"x"
    with pytest.raises(ParameterError, match="identities are a list, and one by itself was given: put"):
        decrypt(sealed, passphrase=None, identities=str(DEVELOPER), name="it")
    with pytest.raises(ParameterError, match="identities are a list, and one by itself was given: put"):
        SealedStore(store.inner, identities=str(DEVELOPER))
