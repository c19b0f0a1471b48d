"""Files that a call names: inputs and outputs, looked at before any work is done, and what opens a key.

No passphrase and no identity is ever printed.
"""

import getpass
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypedDict

from mole.cli.terminal import warn
from mole.errors import FileError, KeyFileError
from mole.storage.atomic import reason_of
from mole.storage.identities import identity_texts
from mole.storage.regular import open_regular
from mole.storage.signing import SigningKey


def check_input(path: Path | None) -> None:
    """Refuse an input that cannot be read, before any work is done."""
    try:
        if path is not None:
            open_regular(path).close()
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {reason_of(error)}") from None


def check_output(path: Path, *, force: bool) -> None:
    """Refuse an output that could not be written, or is there already, before any work is done."""
    try:
        if path.is_dir():
            raise FileError(f"{path} is a folder, and a file is to be written: choose another name")
        if path.exists() and not path.is_file():
            raise FileError(f"{path} is not an ordinary file: choose another name")
        if not force and (path.exists() or path.is_symlink()):
            raise FileError(f"{path} exists already: choose another name, or give --force to replace it")
        check_folder(path)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None


def check_folder(path: Path) -> None:
    """Refuse an output in a folder where nothing can be written."""
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None


def warn_of_key_among(data: Iterable[str], key: Path, *, quiet: bool) -> None:
    """Say so where a key lies in a folder of data: whoever gets a copy of the folder gets both."""
    for folder in data:
        if Path(folder).is_dir() and key.resolve().is_relative_to(Path(folder).resolve()):
            warn(
                f"{key} lies in {folder}, with your data: whoever gets a copy of that folder gets the key, "
                "too, so keep it elsewhere",
                quiet=quiet,
            )


class Secrets(TypedDict):
    """What opens a key: `MorphKey.load(path, **secrets)`."""

    passphrase: str | Callable[[], str]
    identities: list[str]


def secrets_for(path: Path, passphrase_file: Path | None, identities: list[Path] | None) -> Secrets:
    """What opens a key: the passphrase from its file, or else asked for where it turns out to be needed."""

    def ask() -> str:
        if not sys.stdin.isatty():
            raise KeyFileError(f"{path} needs a passphrase: give --passphrase-file, or run in a terminal")
        return getpass.getpass(f"Passphrase of {path}: ")

    passphrase = ask if passphrase_file is None else read_passphrase_file(passphrase_file)
    return {"passphrase": passphrase, "identities": list(identity_texts(identities))}


def signing_key(path: Path | None) -> SigningKey | None:
    """The key that signs, if one is wanted; its passphrase is asked for where it has one."""

    def ask() -> str:
        if not sys.stdin.isatty():
            raise KeyFileError(f"{path} needs a passphrase: run in a terminal, or give a key without one")
        return getpass.getpass(f"Passphrase of {path}: ")

    return None if path is None else SigningKey.load(path, ask)


def read_passphrase_file(path: Path) -> str:
    """The first line of a file."""
    lines = _read_text(path).splitlines()
    if not lines or not lines[0]:
        raise KeyFileError(f"{path} has no passphrase in its first line")
    return lines[0]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise KeyFileError(f"{path} cannot be read: it is not text") from None
