"""What commands print: results on stdout, progress and remarks on stderr."""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.errors import FileError, MoleError, ParameterError, with_advice
from mole.progress import Progress
from mole.storage.locations import reason_of

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no remarks.")]

# Up to the last '@', because a password may have a slash in it; a port is none.
_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)(?!\d+/)[^\s'\"]*@", re.IGNORECASE)
_TOKEN = re.compile(
    r"([?&][^=&\s]*(?:sig|token|secret|password|credential|key)[^=&\s]*=)[^&\s'\"]+", re.IGNORECASE
)


def masked(text: str) -> str:
    """The same text, without the passwords and tokens of URLs in it.

    >>> masked("ftp://me:secret@host/photos is not there")
    'ftp://me:***@host/photos is not there'
    >>> masked("https://host/photos.npz?size=3&token=abc cannot be read")
    'https://host/photos.npz?size=3&token=*** cannot be read'
    """
    return _TOKEN.sub(r"\1***", _PASSWORD.sub(r"\1***@", text))


OPTIONS = {"passphrase": "passphrase-file", "identities": "identity", "replace": "force"}


def in_options(error: MoleError) -> str:
    """An error's message, with what would help as options of the command line.

    >>> in_options(MoleError("it is too large", advice={"resize": ("crop", "stretch"), "skip_bad": True}))
    'it is too large: give --resize crop or --resize stretch and --skip-bad'
    >>> in_options(MoleError("the key is encrypted", advice={"identities": None}))
    'the key is encrypted: give --identity'
    """
    hints = []
    for name, value in error.advice.items():
        option = "--" + OPTIONS.get(name, name.replace("_", "-"))
        values = (value,) if isinstance(value, str) else value
        hints.append(
            " or ".join(f"{option} {one}" for one in values) if isinstance(values, tuple) else option
        )
    return with_advice(error.message, hints)


def complain(text: str) -> None:
    """What went wrong: one sentence."""
    typer.echo(f"mole: {masked(text)}", err=True)


def say(text: str, *, quiet: bool = False) -> None:
    """A remark for the person at the terminal."""
    if not quiet:
        typer.echo(masked(text), err=True)


def show(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """A result: a table, or JSON."""
    if as_json:
        typer.echo(masked(json.dumps(facts)))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(masked(f"{name:<{width}}  {in_words(value)}"))


def in_words(value: object) -> str:
    """A value for a table.

    >>> in_words((3, 32, 32)), in_words((0.5, 0.25)), in_words(True), in_words(None), in_words(())
    ('3 x 32 x 32', '0.5, 0.25', 'yes', 'none', '-')
    """
    if isinstance(value, tuple | list):
        separator = " x " if all(isinstance(part, int) for part in value) else ", "
        return separator.join(map(str, value)) if value else "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {in_words(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Progress]:
    """A bar on stderr while work goes on; nothing when quiet, or when stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console  # noqa: PLC0415  (a tenth of a second that most calls can do without)
    from rich.progress import Progress as Bar  # noqa: PLC0415

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class CallError(ParameterError):
    """Options that cannot stand together, or one that cannot be read: the call was wrong."""


class InterruptedWork(Exception):  # noqa: N818  (no error of ours)
    """Ctrl-C, and a sentence about what is left and how to go on."""


@contextmanager
def when_interrupted(sentence: str | Callable[[], str]) -> Iterator[None]:
    """Give Ctrl-C a sentence that is true of this work; a function is asked when it happens."""
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedWork(sentence if isinstance(sentence, str) else sentence()) from None


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
