"""What commands print: results on stdout, progress and remarks on stderr."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from mole.progress import Progress

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
    >>> masked("https://host/photos.npz?size=3&token=abc can not be read")
    'https://host/photos.npz?size=3&token=*** can not be read'
    """
    return _TOKEN.sub(r"\1***", _PASSWORD.sub(r"\1***@", text))


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
