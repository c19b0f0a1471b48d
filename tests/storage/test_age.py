"""Bytes encrypted with a passphrase: each guess at it costs enough, however busy the machine is."""

import pyrage
import pytest

from light_passphrases import WORK, locked
from mole.errors import MoleWarning
from mole.storage import age

PASSPHRASE = "open sesame"
LIGHT = b"age-encryption.org/v1\n-> scrypt c2FsdA %d\nYm9keQ\n--- bWFj\n"


def encrypt(*, armoured: bool) -> bytes:
    return age.encrypt(b"secret", passphrase=PASSPHRASE, recipients=(), armoured=armoured)


def decrypt(content: bytes) -> bytes:
    return age.decrypt(content, passphrase=PASSPHRASE, identities=(), name="a.key")


@pytest.mark.parametrize("armoured", [True, False])
def test_the_work_of_a_real_file_is_read_from_its_header(armoured):
    encrypted = encrypt(armoured=armoured)
    assert age.work_factor(encrypted) >= age.LEAST_WORK
    assert decrypt(encrypted) == b"secret"


def test_a_file_that_was_made_too_easy_to_guess_is_made_again(monkeypatch):
    """What a busy machine makes is played, since no test can rely on one; the file that stays opens."""
    made = [LIGHT % 5, LIGHT % (WORK - 1), locked(b"secret", PASSPHRASE), LIGHT % 20]
    monkeypatch.setattr(age, "LEAST_WORK", WORK)
    monkeypatch.setattr(pyrage.passphrase, "encrypt", lambda *_, **__: made.pop(0))
    encrypted = encrypt(armoured=False)
    assert made == [LIGHT % 20]  # once there is enough, nothing is made any more
    assert decrypt(encrypted) == b"secret"


def test_where_nothing_helps_the_best_is_kept_and_said_to_be_weak(monkeypatch):
    made = [LIGHT % work for work in (9, 14, 12, 13, 10, 16)]
    monkeypatch.setattr(pyrage.passphrase, "encrypt", lambda *_, **__: made.pop(0))
    with pytest.warns(MoleWarning, match="guessing the passphrase was made 4 times easier than it should"):
        assert encrypt(armoured=True) == LIGHT % 14
    assert len(made) == 1  # it does not try for ever


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"text",
        b"age-encryption.org/v1\n-> X25519 abc\n---",
        b"age-encryption.org/v1\n-> scrypt a x\n---",
    ],
)
def test_what_has_no_work_factor_has_none(header):
    assert age.work_factor(header) == 0
