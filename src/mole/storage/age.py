"""Encrypted bytes at rest, as age files that the standard `age` program opens too."""

import base64
import binascii
from collections.abc import Callable, Sequence
from pathlib import Path

import pyrage

from mole.errors import KeyFileError, ParameterError
from mole.storage.atomic import reason_of

ARMOUR_START = b"-----BEGIN AGE ENCRYPTED FILE-----"
BINARY_START = b"age-encryption.org/"
HEADER_BYTES = 4096
OPENSSH = b"openssh-key-v1\0"  # the name of a cipher follows


def encrypt(content: bytes, *, passphrase: str | None, recipients: Sequence[str], armoured: bool) -> bytes:
    """Content encrypted with a passphrase, or for one or more age recipients."""
    if isinstance(recipients, str):
        raise ParameterError("recipients are a list: put the recipient in brackets")
    if passphrase is not None and recipients:
        raise ParameterError("age encrypts with a passphrase or for recipients, not both: give one")
    if recipients:
        parsed = [parse_recipient(text) for text in recipients]
        return bytes(pyrage.encrypt(content, parsed, armored=armoured))
    if not passphrase or not isinstance(passphrase, str):
        raise ParameterError("a key is never stored in clear: give a passphrase or age recipients")
    return bytes(pyrage.passphrase.encrypt(content, passphrase, armored=armoured))


def decrypt(
    content: bytes, *, passphrase: str | Callable[[], str] | None, identities: Sequence[str], name: str
) -> bytes:
    """Content decrypted with a passphrase or age identities; `name` is the file's, for messages.

    A function is asked for the passphrase only if the file needs one.
    """
    if isinstance(identities, str):
        raise ParameterError("identities are a list: put the identity in brackets")
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
    header = content[:HEADER_BYTES]
    if header.lstrip().startswith(ARMOUR_START):
        body = b"".join(header.lstrip().splitlines()[1:]).split(b"-----END")[0]
        try:
            header = base64.b64decode(body[: len(body) // 4 * 4])
        except (binascii.Error, ValueError):
            return set()
    if not header.startswith(BINARY_START):
        return set()
    lines = header.split(b"\n---")[0].split(b"\n")
    kinds = (line.split(b" ")[1] for line in lines if line.startswith(b"-> ") and line.count(b" ") > 1)
    return {kind.decode("ascii", "replace") for kind in kinds}


def parse_recipient(text: str) -> "pyrage.x25519.Recipient | pyrage.ssh.Recipient":
    """A recipient from its text: age1..., or an ssh-ed25519 public key."""
    # A bad recipient is never shown: it may be an identity or a passphrase in the wrong place.
    text = str(text).strip()
    try:
        parser = pyrage.ssh.Recipient if text.startswith("ssh-") else pyrage.x25519.Recipient
        return parser.from_str(text)
    except pyrage.RecipientError:
        raise ParameterError(
            "a recipient is not one of age's: expected age1... or an ssh-ed25519 public key"
        ) from None


def parse_identities(text: str) -> list["pyrage.x25519.Identity | pyrage.ssh.Identity"]:
    """The identities in the text of an age identity file or an SSH private key."""
    text = str(text)
    try:
        if "PRIVATE KEY-----" in text:
            return [pyrage.ssh.Identity.from_buffer(text.encode())]
        lines = (line.strip() for line in text.splitlines())
        return [
            pyrage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")
        ]
    except pyrage.IdentityError:
        if _is_encrypted_ssh_key(text):
            raise ParameterError(
                "an SSH key with a passphrase cannot be used as an identity: use a copy without one "
                "(ssh-keygen -p changes it), or an age identity (age-keygen makes one)"
            ) from None
        raise ParameterError(
            "an identity cannot be read: expected the text of an age identity file (AGE-SECRET-KEY-1...) "
            "or of an SSH private key, not its path"
        ) from None


def _is_encrypted_ssh_key(text: str) -> bool:
    """Whether the text of an SSH private key says that a passphrase protects it."""
    if "ENCRYPTED" in text:  # as PEM files say it
        return True
    body = "".join(line for line in text.splitlines() if not line.startswith("-----"))
    try:
        content = base64.b64decode(body)
    except (binascii.Error, ValueError):
        return False
    return content.startswith(OPENSSH) and not content.startswith(OPENSSH + b"\0\0\0\4none")
