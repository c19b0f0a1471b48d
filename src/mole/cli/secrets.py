"""How a command gets at a key: a passphrase typed or from a file, or age identities."""

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from mole.errors import KeyFileError
from mole.provider.keys import MorphKey
from mole.storage.age import needs_passphrase

PassphraseFileOption = Annotated[
    Path | None,
    typer.Option(help="File whose first line is the key's passphrase; otherwise it is asked for."),
]
IdentityOption = Annotated[
    list[Path] | None,
    typer.Option(help="age identity file or SSH private key, for a key with recipients. Repeatable."),
]


def open_key(path: Path, passphrase_file: Path | None, identities: list[Path] | None) -> MorphKey:
    """Load a key; asks for the passphrase on the terminal where one is needed and none was given."""
    texts = [_read_text(file) for file in identities or []]
    if not needs_passphrase(path):
        return MorphKey.load(path, identities=texts)
    if passphrase_file is not None:
        return MorphKey.load(path, read_passphrase_file(passphrase_file))
    if not sys.stdin.isatty():
        raise KeyFileError(f"{path} needs a passphrase: give --passphrase-file, or run in a terminal")
    return MorphKey.load(path, getpass.getpass(f"Passphrase of {path}: "))


def read_passphrase_file(path: Path) -> str:
    """The first line of a file."""
    lines = _read_text(path).splitlines()
    if not lines or not lines[0]:
        raise KeyFileError(f"{path} has no passphrase in its first line")
    return lines[0]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise KeyFileError(f"{path} cannot be read: {reason}") from None
