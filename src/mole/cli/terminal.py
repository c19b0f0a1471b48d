"""How commands speak to the person at the terminal, and how they end.

Results go to stdout, everything else to stderr; passwords and tokens in URLs are masked in both. An output
is looked at before the work begins, and Ctrl-C gets a sentence that is true of the work it interrupts.
"""

import getpass
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

import typer
from rich.console import Console
from rich.progress import Progress as Bar

from mole.errors import (
    FileError,
    KeyFileError,
    MoleError,
    MoleWarning,
    ParameterError,
    PrivacyWarning,
    ProblemsError,
    with_advice,
)
from mole.foreign_text import LONGEST, listed, printable, shown
from mole.progress import Progress
from mole.quantities import size_text
from mole.storage.atomic import reason_of
from mole.storage.regular import open_regular
from mole.storage.signing import SigningKey

# Each of these reads every character once: text may be long, and somebody else's.
_WORD = re.compile(r"[^\s'\"]+")
_USER = re.compile(r"://[^/:@]*:(?!\d+/)")  # a port is no password
_PARAMETER = re.compile(r"([?&]([^=&?\s]*)=)[^&\s'\"]+")
_SECRET = re.compile("sig|token|secret|password|credential|key", re.IGNORECASE)


def masked(text: str) -> str:
    """The same text, without the passwords and tokens of URLs in it.

    >>> masked("ftp://me:secret@host/photos is not there")
    'ftp://me:***@host/photos is not there'
    >>> masked("https://host/photos.npz?size=3&token=abc cannot be read")
    'https://host/photos.npz?size=3&token=*** cannot be read'
    """
    without_passwords = _WORD.sub(_without_password, text) if "://" in text else text
    return _PARAMETER.sub(
        lambda found: f"{found[1]}***" if _SECRET.search(found[2]) else found[0], without_passwords
    )


def _without_password(word: re.Match[str]) -> str:
    """A word with the first password masked: up to the last '@', because one may have a slash in it."""
    text = word[0]
    last = text.rfind("@")
    user = _USER.search(text, 0, last) if last >= 0 else None
    return text if user is None else f"{text[: user.end()]}***{text[last:]}"


def fit_to_print(text: str) -> str:
    r"""A line for a terminal: secrets masked, and whatever could steer the terminal as escapes.

    >>> fit_to_print("class \x1b[2J at ftp://me:secret@host")
    'class \\x1b[2J at ftp://me:***@host'
    """
    return printable(masked(text))


MANY = 1000  # classes of a delivery, all shown where a person may want to know them
LONGEST_VALUE = 2000  # characters of one value in a table
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


def complain(text: str, problems: Sequence[str] = ()) -> None:
    """What went wrong: one sentence; where it is several things, each in a line of its own."""
    typer.echo(fit_to_print(f"mole: {text}:" if problems else f"mole: {text}"), err=True)
    for problem in problems:
        typer.echo(f"  - {fit_to_print(problem)}", err=True)


def complain_of(error: MoleError) -> None:
    """What went wrong, and what would help."""
    several = error.problems if isinstance(error, ProblemsError) else ()
    complain(in_options(error), [in_options(problem) for problem in several])


def say(text: str, *, quiet: bool = False) -> None:
    """A remark for the person at the terminal."""
    if not quiet:
        typer.echo(fit_to_print(text), err=True)


@contextmanager
def warnings_said(*, quiet: bool) -> Iterator[None]:
    """Say at once what the library warns of; what is about people's privacy, in any case."""
    others = warnings.showwarning

    def show_warning(message: Warning | str, category: type[Warning], *about: Any, **more: Any) -> None:
        if issubclass(category, MoleWarning):
            say(f"mole: {message}", quiet=quiet and not issubclass(category, PrivacyWarning))
        else:
            others(message, category, *about, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", MoleWarning)
        warnings.showwarning = show_warning
        yield


def show(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """A result: a table, in which bytes are sizes for people, or JSON."""
    if as_json:
        typer.echo(masked(json.dumps(facts)))
        return
    sized = {
        name.replace("all", "total").replace("bytes", "size") if is_size else name: size_text(value)
        if is_size
        else value
        for name, value in facts.items()
        for is_size in [name.endswith("bytes") and isinstance(value, int)]
    }
    width = max(min(len(name), LONGEST) for name in sized)
    for name, value in sized.items():
        typer.echo(fit_to_print(f"{name:<{width}}  {in_words(value)}"))


def in_words(value: object) -> str:
    """A value for a table.

    >>> in_words((3, 32, 32)), in_words((0.5, 0.25)), in_words(True), in_words(None), in_words(())
    ('3 x 32 x 32', '0.5, 0.25', 'yes', 'none', '-')
    """
    if isinstance(value, tuple | list):
        is_shape = all(isinstance(part, int) for part in value)
        return (" x ".join(map(str, value)) if is_shape else listed(value, MANY)) if value else "-"
    if isinstance(value, dict):
        return ", ".join(f"{shown(name)} {in_words(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else shown(value, LONGEST_VALUE)


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Progress]:
    """A bar on stderr while work goes on; nothing when quiet, or when stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    bar = Bar(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=None)

    def update(done: int, total: int) -> None:
        bar.start()  # not before: somebody may be asked for a passphrase first
        bar.update(task, completed=done, total=total)
        if done >= total:
            bar.stop()  # other work may follow, with a bar of its own

    try:
        yield update
    finally:
        bar.stop()


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
    return {"passphrase": passphrase, "identities": [_read_text(file) for file in identities or []]}


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
