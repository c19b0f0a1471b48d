"""Where results go: one rule for every command that writes a file."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mole.errors import FileError
from mole.files.addresses import reason_of

ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Replace the output if it is there already.")
]


def check_output(path: Path, *, force: bool) -> None:
    """Refuse an output that could not be written, or is there already, before any work is done."""
    try:
        if path.is_dir():
            raise FileError(f"{path} is a folder, and a file is to be written: choose another name")
        if path.exists() and not path.is_file():
            raise FileError(f"{path} is no ordinary file: choose another name")
        if not force and (path.exists() or path.is_symlink()):
            raise FileError(f"{path} exists already: choose another name, or replace it with --force")
        check_folder(path)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} can not be written: {reason_of(error)}") from None


def check_folder(path: Path) -> None:
    """Refuse an output in a folder where nothing can be written."""
    if not path.parent.is_dir():
        raise FileError(f"{path} can not be written: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise FileError(f"{path} can not be written: {reason_of(error)}") from None
