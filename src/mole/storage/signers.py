"""Whose signatures are believed: a public key, or a file of allowed signers, as ssh-keygen(1) has them.

    me@example.org ssh-ed25519 AAAAC3Nza...
    *@example.org namespaces="mole-delivery" ssh-ed25519 AAAAC3Nza... a comment

Names in it are not looked at: whoever is in the file is believed. Where a line has an option that this
program does not know, the file is refused, because the option may be there to limit what the key may sign.
"""

import base64
import binascii
import fnmatch
import os
import re
from pathlib import Path
from typing import NamedTuple

from mole.errors import FileError, ParameterError
from mole.storage.age import read_limited
from mole.storage.signing import KIND, MAX_KEY_BYTES

_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_NAMESPACES = re.compile(r'namespaces="([\w*?.,@-]+)"', re.IGNORECASE)


class Signer(NamedTuple):
    """A key that is believed, and for which namespaces: patterns, or None for all."""

    public: bytes
    namespaces: tuple[str, ...] | None = None

    def may_sign(self, namespace: str) -> bool:
        """Whether the key is believed for this kind of thing."""
        return self.namespaces is None or any(
            fnmatch.fnmatchcase(namespace, pattern) for pattern in self.namespaces
        )


def read_signers(signer: str | os.PathLike[str]) -> list[Signer]:
    """The keys that are believed.

    Args:
        signer: a public key (`ssh-ed25519 AAAA...`), the file of one, or a file of allowed signers.

    Raises:
        FileError: if the file cannot be read, has no Ed25519 key, or has options that are not known.
    """
    if isinstance(signer, str) and signer.startswith(f"{KIND.decode()} "):
        name, text = "the signer's key", signer
    else:
        name = os.fspath(signer)
        text = read_limited(Path(signer), MAX_KEY_BYTES).decode("utf-8", "replace")
    if "PRIVATE KEY-----" in text:
        raise ParameterError(f"{name} is a private key: give the public one, which ends in .pub")
    lines = (line.strip() for line in text.splitlines())
    found = [_signer(line, name) for line in lines if line and not line.startswith("#")]
    keys = [one for one in found if one is not None]
    if not keys:
        raise FileError(f"{name} has no Ed25519 public key: give a .pub file, or one of allowed signers")
    return keys


def _signer(line: str, name: str) -> Signer | None:
    """The key of a line; None for one of another kind than Ed25519."""
    words = _WORD.findall(line)
    kind = KIND.decode()
    if kind not in words[:3]:
        return None
    place = words.index(kind)
    options = words[1] if place == 2 else ""
    namespaces = _NAMESPACES.fullmatch(options)
    if options and namespaces is None:
        raise FileError(f"{name} has a line with options that are not known here: leave only namespaces=")
    try:
        public = base64.b64decode(words[place + 1], validate=True)
    except (binascii.Error, ValueError, IndexError):
        raise FileError(f"{name} has a public key that cannot be read: use an undamaged copy") from None
    return Signer(public, None if namespaces is None else tuple(namespaces[1].split(",")))
