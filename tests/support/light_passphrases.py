"""Keys behind a passphrase that open at once: each guess costs little, as is good enough for a test.

pyrage takes a second or more for every passphrase, on purpose, and as much again each time that one is
tried. What it reads does not have to cost that: an age file says itself how much work it asks for.
"""

import hashlib
import hmac
import os
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import pyrage
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import mole
from mole.storage import age

WORK = 10  # as a power of two; what the program itself writes has 16 or more
CHUNK = 1 << 16
VERSION = b"age-encryption.org/v1"


# For the front of a program that is to do so.
PROGRAM = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from light_passphrases import lighten_all
lighten_all()
"""


class Patch(Protocol):
    """Where something is put in the place of an attribute, for a while or for good."""

    def setattr(self, target: object, name: str, value: object, /) -> None: ...


def save_lightly(key: mole.MorphKey, path: Path, passphrase: str) -> None:
    """Save a key so that a passphrase opens it, with little work, and armoured as keys are."""
    identity = pyrage.x25519.Identity.generate()
    key.save(path, recipients=[str(identity.to_public())])
    path.write_bytes(armoured(locked(bytes(pyrage.decrypt(path.read_bytes(), [identity])), passphrase)))


def lighten(patch: Patch) -> None:
    """Let whatever this process locks with a passphrase cost little."""

    def encrypt(content: bytes, passphrase: str, *, armored: bool = False) -> bytes:
        made = locked(content, passphrase)
        return armoured(made) if armored else made

    patch.setattr(pyrage.passphrase, "encrypt", encrypt)
    patch.setattr(age, "LEAST_WORK", WORK)


def lighten_all() -> None:
    """The same for as long as this process lasts."""
    lighten(SimpleNamespace(setattr=setattr))


def armoured(content: bytes) -> bytes:
    """An age file in letters that a mail takes."""
    lines = [content[start : start + 48] for start in range(0, len(content), 48)]
    begin, end = (b"-----%s AGE ENCRYPTED FILE-----" % word for word in (b"BEGIN", b"END"))
    return b"\n".join([begin, *map(b64encode, lines), end, b""])


def locked(content: bytes, passphrase: str) -> bytes:
    """An age file, by age's specification."""
    file_key, salt, nonce = (os.urandom(16) for _ in range(3))
    wrapping = hashlib.scrypt(
        passphrase.encode(), salt=VERSION + b"/scrypt" + salt, n=1 << WORK, r=8, p=1, dklen=32
    )
    wrapped = ChaCha20Poly1305(wrapping).encrypt(bytes(12), file_key, None)
    stanza = b"-> scrypt %s %d\n%s\n" % (_text(salt), WORK, _text(wrapped))
    header = VERSION + b"\n" + stanza + b"---"
    mac = hmac.digest(_derived(file_key, b"header"), header, "sha256")
    cipher = ChaCha20Poly1305(_derived(file_key, b"payload", nonce))
    sealed = [
        cipher.encrypt(
            _chunk_nonce(number, is_last=at + CHUNK >= len(content)), content[at : at + CHUNK], None
        )
        for number, at in enumerate(range(0, len(content), CHUNK))
    ]
    return header + b" " + _text(mac) + b"\n" + nonce + b"".join(sealed)


def _chunk_nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def _derived(file_key: bytes, what: bytes, salt: bytes = b"") -> bytes:
    return HKDF(SHA256(), 32, salt, what).derive(file_key)


def _text(content: bytes) -> bytes:
    return b64encode(content).rstrip(b"=")
