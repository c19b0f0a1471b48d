"""The key at rest: age files that the standard program opens, and clear words for everything else."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pyrage
import pytest

import mole
from light_passphrases import locked, save_lightly
from mole.errors import KeyFileError, ParameterError
from mole.provider.keys.key_file import check_passphrase, write_key_text
from small_keys import IDENTITY, RECIPIENT, same, small_key


@pytest.fixture
def key() -> mole.MorphKey:
    return small_key()


@pytest.fixture
def whitened_key(rng) -> mole.MorphKey:
    return mole.MorphKey.generate((1, 4, 4), core="whitened", sample=rng.normal(size=(50, 1, 4, 4)))


@pytest.mark.fresh_draws
def test_generated_keys_differ():
    keys = [mole.MorphKey.generate((1, 4, 4)) for _ in range(20)]
    assert len({key.fingerprint for key in keys}) == 20


def test_a_passphrase_opens_it_again(key, tmp_path):
    key.save(tmp_path / "provider.key", "correct horse")
    assert same(mole.MorphKey.load(tmp_path / "provider.key", "correct horse"), key)


def test_recipients_open_it_again(key, tmp_path):
    second = pyrage.x25519.Identity.generate()
    key.save(tmp_path / "provider.key", recipients=[RECIPIENT, str(second.to_public())])
    for identity in (IDENTITY, second):
        assert same(mole.MorphKey.load(tmp_path / "provider.key", identities=[str(identity)]), key)


def test_an_ssh_key_opens_it_again(key, tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True)
    key.save(tmp_path / "provider.key", recipients=[(tmp_path / "id.pub").read_text()])
    identity = (tmp_path / "id").read_text()
    assert same(mole.MorphKey.load(tmp_path / "provider.key", identities=[identity]), key)


def test_a_whitened_key_keeps_its_whitening_beside_it(whitened_key, tmp_path):
    whitened_key.save(tmp_path / "w.key", recipients=[RECIPIENT])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["w.key", "w.key.whitening"]
    loaded = mole.MorphKey.load(tmp_path / "w.key", identities=[str(IDENTITY)])
    assert same(loaded, whitened_key)


def test_the_second_file_of_a_key_is_not_taken_for_the_key(whitened_key, tmp_path):
    whitened_key.save(tmp_path / "w.key", recipients=[RECIPIENT])
    with pytest.raises(
        KeyFileError, match=r"is the second file of a key, and not the key: give .*/w\.key$"
    ):
        mole.MorphKey.load(tmp_path / "w.key.whitening", identities=[str(IDENTITY)])
    (tmp_path / "w.key").rename(tmp_path / "odd.whitening")  # a key may have any name
    (tmp_path / "w.key.whitening").rename(tmp_path / "odd.whitening.whitening")
    opened = mole.MorphKey.load(tmp_path / "odd.whitening", identities=[str(IDENTITY)])
    assert opened.fingerprint == whitened_key.fingerprint


def test_another_keys_whitening_is_refused(whitened_key, rng, tmp_path):
    other = mole.MorphKey.generate((1, 4, 4), core="whitened", sample=rng.normal(size=(50, 1, 4, 4)))
    whitened_key.save(tmp_path / "one.key", recipients=[RECIPIENT])
    other.save(tmp_path / "two.key", recipients=[RECIPIENT])
    shutil.copy(tmp_path / "two.key.whitening", tmp_path / "one.key.whitening")
    with pytest.raises(KeyFileError, match="belongs to another key"):
        mole.MorphKey.load(tmp_path / "one.key", identities=[str(IDENTITY)])
    (tmp_path / "one.key.whitening").unlink()
    with pytest.raises(
        KeyFileError, match=r"one\.key\.whitening does not exist: .*; restore it from your backup"
    ):
        mole.MorphKey.load(tmp_path / "one.key", identities=[str(IDENTITY)])


def test_only_its_owner_can_read_it(whitened_key, tmp_path):
    previous = os.umask(0)
    try:
        whitened_key.save(tmp_path / "provider.key", recipients=[RECIPIENT])
    finally:
        os.umask(previous)
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("existing", ["provider.key", "provider.key.whitening"])
def test_nothing_is_ever_overwritten(whitened_key, tmp_path, existing):
    (tmp_path / existing).write_text("precious")
    with pytest.raises(KeyFileError, match="never overwritten"):
        whitened_key.save(tmp_path / "provider.key", recipients=[RECIPIENT])
    assert [file.name for file in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "precious"


def test_a_folder_that_is_not_there_is_named(key, tmp_path):
    with pytest.raises(KeyFileError, match="No such file"):
        key.save(tmp_path / "nowhere" / "provider.key", recipients=[RECIPIENT])
    with pytest.raises(KeyFileError, match="cannot be read"):
        mole.MorphKey.load(tmp_path / "nowhere", "x")


def test_an_interrupted_save_leaves_nothing_behind(whitened_key, tmp_path, monkeypatch):
    from mole.provider.keys import key_file as module

    write, written = module.new_secret_file, []

    def interrupted(path: Path, content: bytes) -> None:
        if written:
            raise KeyboardInterrupt
        write(path, content)
        written.append(path)

    monkeypatch.setattr(module, "new_secret_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        whitened_key.save(tmp_path / "provider.key", recipients=[RECIPIENT])
    assert list(tmp_path.iterdir()) == []


def test_file_systems_without_links_hold_keys_too(key, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    key.save(tmp_path / "provider.key", recipients=[RECIPIENT])
    assert [file.name for file in tmp_path.iterdir()] == ["provider.key"]
    assert same(mole.MorphKey.load(tmp_path / "provider.key", identities=[str(IDENTITY)]), key)


def test_an_armoured_whitening_opens_too(whitened_key, tmp_path):
    whitened_key.save(tmp_path / "w.key", recipients=[RECIPIENT])
    path = tmp_path / "w.key.whitening"
    content = pyrage.decrypt(path.read_bytes(), [IDENTITY])
    path.write_bytes(pyrage.encrypt(content, [IDENTITY.to_public()], armored=True))
    assert same(mole.MorphKey.load(tmp_path / "w.key", identities=[str(IDENTITY)]), whitened_key)


def test_a_full_disk_leaves_nothing_behind(whitened_key, tmp_path, monkeypatch):
    written = []

    def full(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) > 2:  # the whitening is written, the key is not
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyFileError, match="No space left"):
        whitened_key.save(tmp_path / "provider.key", recipients=[RECIPIENT])
    assert list(tmp_path.iterdir()) == []


def test_a_short_passphrase_makes_no_key_and_still_opens_an_old_one(key, tmp_path):
    with pytest.raises(KeyFileError, match="at least 8 characters: choose a longer one") as caught:
        key.save(tmp_path / "provider.key", "seven77")
    assert "seven77" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    text = write_key_text(key.parameters, bytes(32)).encode()
    (tmp_path / "old.key").write_bytes(locked(text, "seven77"))
    assert mole.MorphKey.load(tmp_path / "old.key", "seven77").parameters == key.parameters
    assert check_passphrase("eight888") == "eight888"


def test_a_key_is_never_stored_in_clear(key, tmp_path):
    for arguments in ({}, {"passphrase": ""}, {"passphrase": "x", "recipients": [RECIPIENT]}):
        with pytest.raises(ParameterError):
            key.save(tmp_path / "provider.key", **arguments)
    for recipients in (["age1nonsense"], [str(IDENTITY)], ["my passphrase"], [None], RECIPIENT):
        with pytest.raises(ParameterError, match="recipient") as caught:
            key.save(tmp_path / "provider.key", recipients=recipients)
        for secret in (str(IDENTITY)[20:28], "my passphrase"):
            assert secret not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_opens_it_wrongly_is_said(key, tmp_path):
    with_passphrase, with_recipient = tmp_path / "p.key", tmp_path / "r.key"
    save_lightly(key, with_passphrase, "the right one")
    key.save(with_recipient, recipients=[RECIPIENT])
    stranger = str(pyrage.x25519.Identity.generate())
    for path, arguments, words in [
        (
            with_passphrase,
            {"passphrase": "the wrong one"},
            "the passphrase is wrong, or the file is damaged",
        ),
        (with_passphrase, {"identities": [stranger]}, "protected by a passphrase"),
        (with_passphrase, {}, "protected by a passphrase"),
        (with_recipient, {"passphrase": "the right one"}, "encrypted for age recipients"),
        (with_recipient, {"identities": [stranger]}, "the identity is wrong, or the file is damaged"),
    ]:
        with pytest.raises(KeyFileError, match=words):
            mole.MorphKey.load(path, **arguments)
    with pytest.raises(ParameterError, match="identity cannot be read"):
        mole.MorphKey.load(with_recipient, identities=["AGE-SECRET-KEY-1NONSENSE"])


def test_example_paths_are_ignored_by_git():
    ignored = Path(__file__).parents[2] / ".gitignore"
    assert "*.key\n" in ignored.read_text()
