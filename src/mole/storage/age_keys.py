"""Recipients and identities of age from their texts: the public halves of keys, and the secret ones.

No text that cannot be read is ever shown: it may be a secret in the wrong place. What it seems to be is
said instead.
"""

import base64
import binascii
import os
from collections.abc import Iterable
from pathlib import Path

import pyrage

from mole.errors import ParameterError
from mole.foreign_text import shown

OPENSSH = b"openssh-key-v1\0"  # the name of a cipher follows
START = "AGE-SECRET-KEY-"
RECIPIENTS = "age1..., or an SSH public key (ssh-ed25519 or ssh-rsa)"


def listed_ones(given: Iterable[str], what: str) -> list[str]:
    """Several texts, such as recipients, given as a list; a text by itself would be a list of letters.

    >>> listed_ones(("age1...",), "recipients")
    ['age1...']

    Raises:
        ParameterError: if one text, or one path, stands in the place of a list.
    """
    if isinstance(given, str | bytes | os.PathLike):
        raise ParameterError(f"{what} are a list, and one by itself was given: put it in brackets, [...]")
    return list(given)


def parse_recipient(text: str) -> "pyrage.x25519.Recipient | pyrage.ssh.Recipient":
    """A recipient from its text: age1..., or an SSH public key, Ed25519 or RSA.

    Raises:
        ParameterError: with what it is instead, without showing it.
    """
    text = str(text).strip()
    try:
        parser = pyrage.ssh.Recipient if text.startswith("ssh-") else pyrage.x25519.Recipient
        return parser.from_str(text)
    except pyrage.RecipientError:
        raise ParameterError(_no_recipient(text)) from None


def _no_recipient(text: str) -> str:
    """What is wrong with a recipient."""
    if START in text.upper():
        return (
            "a recipient is the public half of an identity, and what was given is the secret one, which "
            "stays with its owner: give age1..., which age-keygen -y prints"
        )
    if "-----BEGIN" in text:
        return (
            "a recipient is a public key, and what was given is an SSH private key, which stays with its "
            "owner: give the text of the file that ends in .pub"
        )
    if _is_file(text):
        return f"a recipient is a text, and {shown(text)} is a file: give its contents, {RECIPIENTS}"
    return f"a recipient is not one that age knows: expected {RECIPIENTS}"


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def parse_identities(text: str) -> list["pyrage.x25519.Identity | pyrage.ssh.Identity"]:
    """The identities in the text of an age identity file or an SSH private key, Ed25519 or RSA.

    Raises:
        ParameterError: with what it is instead, without showing it.
    """
    text = str(text)
    try:
        if "PRIVATE KEY-----" in text:
            return [pyrage.ssh.Identity.from_buffer(text.encode())]
        lines = (line.strip() for line in text.splitlines())
        found = [
            pyrage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")
        ]
    except pyrage.IdentityError:
        raise ParameterError(_no_identity(text)) from None
    if not found:
        raise ParameterError(_no_identity(text))
    return found


def _no_identity(text: str) -> str:
    """What is wrong with an identity."""
    if _is_encrypted_ssh_key(text):
        return (
            "an SSH key with a passphrase cannot be used as an identity: use a copy without one "
            "(ssh-keygen -p changes it), or an age identity (age-keygen makes one)"
        )
    if text.strip().startswith(("age1", "ssh-")):
        return (
            "this is the public half of a key, and an identity is the secret one: give the file "
            "that age-keygen wrote (AGE-SECRET-KEY-1...), or the SSH private key"
        )
    given = ", not its path" if _is_file(text) else ""
    return (
        "an identity cannot be read: expected the text of an age identity file (AGE-SECRET-KEY-1...) "
        f"or of an SSH private key (Ed25519 or RSA){given}"
    )


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
