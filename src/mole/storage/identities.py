"""What opens an age file: identities, from files or texts; and the bare secrets inside them.

age writes an X25519 secret as a word of its own alphabet, Bech32: `AGE-SECRET-KEY-1...`.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from mole.errors import ParameterError
from mole.storage.age import read_limited
from mole.storage.age_keys import listed_ones, parse_identities, parse_recipient

Identity = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""An identity file, or the text of one, or several of them."""

MARKS = ("AGE-SECRET-KEY-", "PRIVATE KEY-----")
MAX_FILE_BYTES = 1 << 16
PREFIX = "age-secret-key-"
LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


def identity_texts(identity: Identity | None) -> tuple[str, ...]:
    """The texts of identities, some of which may be given as paths of their files; each is checked.

    Raises:
        KeyFileError: if a file cannot be read.
        ParameterError: if a text, or a file that it names, is not an identity.
    """
    if identity is None:
        return ()
    given = [identity] if isinstance(identity, str | os.PathLike) else identity
    texts = []
    for one in given:
        texts.append(text := _text(one))
        try:
            parse_identities(text)
        except ParameterError as error:
            raise (error if text is one else ParameterError(f"{one}: {error.message}")) from None
    return tuple(texts)


def recipient_texts(recipients: Sequence[str]) -> tuple[str, ...]:
    """Recipients, each once, in a fixed order and without the comments of SSH keys; each is checked.

    >>> recipient_texts([" age1y8m84r6pwd4da5d45zzk03rlgv2xr7fn9px80suw3psrahul44ashl0usm "])
    ('age1y8m84r6pwd4da5d45zzk03rlgv2xr7fn9px80suw3psrahul44ashl0usm',)
    """
    texts = listed_ones(recipients, "recipients")
    for text in texts:
        parse_recipient(text)
    return tuple(sorted({" ".join(str(text).split()[:2]) for text in texts}))


def x25519_secrets(texts: Sequence[str]) -> list[bytes]:
    """The 32 bytes of every X25519 identity in some texts; SSH keys have none."""
    lines = (line.strip() for text in texts if "PRIVATE KEY-----" not in text for line in text.splitlines())
    return [_secret(line) for line in lines if line and not line.startswith("#")]


def x25519_identity(secret: bytes) -> str:
    """An X25519 secret of 32 bytes as age writes it.

    >>> x25519_identity(bytes(32))
    'AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ8H00W3'
    """
    values = [*_regrouped(secret, 8, 5)]
    expanded = [ord(letter) >> 5 for letter in PREFIX] + [0] + [ord(letter) & 31 for letter in PREFIX]
    check = _checksum([*expanded, *values, *[0] * 6]) ^ 1
    values += [check >> 5 * (5 - place) & 31 for place in range(6)]
    return f"{PREFIX}1{''.join(LETTERS[value] for value in values)}".upper()


def _text(identity: str | os.PathLike[str]) -> str:
    """An identity's text; anything that does not look like one is a path."""
    if isinstance(identity, str) and any(mark in identity for mark in MARKS):
        return identity
    return read_limited(Path(identity), MAX_FILE_BYTES).decode("utf-8", "replace")


def _secret(line: str) -> bytes:
    """The bytes of a checked identity; its last six letters are a checksum."""
    word = line.lower().removeprefix(f"{PREFIX}1")
    return bytes(_regrouped([LETTERS.index(letter) for letter in word[:-6]], 5, 8))[:32]


def _regrouped(values: Sequence[int], width: int, wanted: int) -> Iterator[int]:
    """Numbers of some bits as numbers of others; left-over bits are filled with zeros."""
    bits = "".join(f"{value:0{width}b}" for value in values)
    for start in range(0, len(bits), wanted):
        yield int(bits[start : start + wanted].ljust(wanted, "0"), 2)


def _checksum(values: Sequence[int]) -> int:
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, constant in enumerate(GENERATOR):
            check ^= constant if top >> place & 1 else 0
    return check
