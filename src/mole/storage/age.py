"""Encrypted bytes at rest, as age files that the standard `age` program opens too."""

import base64
import binascii
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pyrage

from mole.errors import KeyFileError, MoleWarning, ParameterError
from mole.storage.age_keys import listed_ones, parse_identities, parse_recipient
from mole.storage.atomic import reason_of

ARMOUR_START = b"-----BEGIN AGE ENCRYPTED FILE-----"
BINARY_START = b"age-encryption.org/"
HEADER_BYTES = 4096
LEAST_WORK = 16  # scrypt's work factor as a power of two: half a second and 64 MB for each guess
ATTEMPTS = 5


def encrypt(content: bytes, *, passphrase: str | None, recipients: Sequence[str], armoured: bool) -> bytes:
    """Content encrypted with a passphrase, or for one or more age recipients."""
    recipients = listed_ones(recipients, "recipients")
    if passphrase is not None and recipients:
        raise ParameterError("age encrypts with a passphrase or for recipients, not both: give one")
    if recipients:
        parsed = [parse_recipient(text) for text in recipients]
        return bytes(pyrage.encrypt(content, parsed, armored=armoured))
    if not passphrase or not isinstance(passphrase, str):
        raise ParameterError("a key is never stored in clear: give a passphrase or age recipients")
    return _encrypt_with_work(content, passphrase, armoured=armoured)


def _encrypt_with_work(content: bytes, passphrase: str, *, armoured: bool) -> bytes:
    """Content encrypted so that every guess at its passphrase costs enough.

    pyrage takes the time of a trial to choose how much work that is, and so chooses less on a machine that
    is busy just then.
    """
    best, most = b"", -1
    for _ in range(ATTEMPTS):
        encrypted = bytes(pyrage.passphrase.encrypt(content, passphrase, armored=armoured))
        if (work := work_factor(encrypted)) > most:
            best, most = encrypted, work
        if most >= LEAST_WORK:
            return best
    warnings.warn(
        f"this machine is so busy that guessing the passphrase was made {2 ** (LEAST_WORK - most)} times "
        "easier than it should be: write it again later, or choose a longer passphrase",
        MoleWarning,
        stacklevel=3,
    )
    return best


def decrypt(
    content: bytes, *, passphrase: str | Callable[[], str] | None, identities: Sequence[str], name: str
) -> bytes:
    """Content decrypted with a passphrase or age identities; `name` is the file's, for messages.

    A function is asked for the passphrase only if the file needs one.
    """
    identities = listed_ones(identities, "identities")
    stanzas = stanza_kinds(content)
    if not stanzas:
        raise KeyFileError(f"{name} is not a key (an age file), or it is cut off: use an undamaged copy")
    if "scrypt" in stanzas and callable(passphrase):
        passphrase = passphrase()
    if "scrypt" in stanzas and not isinstance(passphrase, str):
        raise KeyFileError(f"{name} is protected by a passphrase", advice={"passphrase": None})
    if "scrypt" not in stanzas and not identities:
        raise KeyFileError(f"{name} is encrypted for age recipients", advice={"identities": None})
    try:
        if "scrypt" in stanzas:
            return bytes(pyrage.passphrase.decrypt(content, passphrase))
        parsed = [identity for text in identities for identity in parse_identities(text)]
        return bytes(pyrage.decrypt(content, parsed))
    except pyrage.DecryptError:
        secret = "passphrase" if "scrypt" in stanzas else "identity"
        raise KeyFileError(
            f"{name} cannot be decrypted: the {secret} is wrong, or the file is damaged"
        ) from None


def is_age_file(path: Path) -> bool:
    """Whether a file starts like an age file."""
    return read_limited(path, HEADER_BYTES, cut=True).lstrip().startswith((ARMOUR_START, BINARY_START))


def read_limited(path: Path, limit: int, *, cut: bool = False) -> bytes:
    """A file's bytes; one above the limit is cut there, or refused."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise KeyFileError(f"{path} cannot be read: {reason_of(error)}") from None
    if len(content) > limit and not cut:
        raise KeyFileError(f"{path} is too large to be a key, or to open one: is it the right file?")
    return content[:limit]


def stanza_kinds(content: bytes) -> set[str]:
    """How an age file can be opened: {'scrypt'} for a passphrase, {'X25519', ...} for identities.

    Empty for what is not an age file.

    >>> stanza_kinds(b"not an age file")
    set()
    """
    return {stanza[0].decode("ascii", "replace") for stanza in _stanzas(content)}


def work_factor(content: bytes) -> int:
    r"""How much work a guess at an age file's passphrase is, as a power of two; 0 where it has none.

    >>> work_factor(b"age-encryption.org/v1\n-> scrypt c2FsdA 18\nYm9keQ\n--- bWFj\n")
    18
    """
    found = [stanza for stanza in _stanzas(content) if stanza[0] == b"scrypt" and len(stanza) == 3]
    return int(found[0][2]) if found and found[0][2].isdigit() else 0


def _stanzas(content: bytes) -> list[list[bytes]]:
    """The first line of each part of an age file's header, in words: its kind and what that takes."""
    header = content[:HEADER_BYTES]
    if header.lstrip().startswith(ARMOUR_START):
        body = b"".join(header.lstrip().splitlines()[1:]).split(b"-----END")[0]
        try:
            header = base64.b64decode(body[: len(body) // 4 * 4])
        except (binascii.Error, ValueError):
            return []
    if not header.startswith(BINARY_START):
        return []
    lines = header.split(b"\n---")[0].split(b"\n")
    return [line.split(b" ")[1:] for line in lines if line.startswith(b"-> ") and line.count(b" ") > 1]
