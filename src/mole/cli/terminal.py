"""How commands speak to the person at the terminal, and how they end.

Results go to stdout, everything else to stderr; passwords and tokens in URLs are masked in both. An error
is 'mole: ...', and what does not stop the work is 'mole: warning: ...' or 'mole: note: ...'. Ctrl-C gets
a sentence that is true of the work it interrupts.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import Progress as Bar

from mole.cli.fit_to_print import fit_to_print, in_options, in_words
from mole.errors import MoleError, MoleWarning, PrivacyWarning, ProblemsError
from mole.foreign_text import LONGEST
from mole.progress import Progress
from mole.quantities import size_text
from mole.url_secrets import masked


def complain(text: str, problems: Sequence[str] = ()) -> None:
    """What went wrong: one sentence; where it is several things, each in a line of its own."""
    _tell("mole:", typer.colors.RED, text, problems)


def complain_of(error: MoleError) -> None:
    """What went wrong, and what would help."""
    complain(in_options(error), _problems(error))


def warn(text: str, problems: Sequence[str] = (), *, quiet: bool = False) -> None:
    """What the person should think about; the work goes on."""
    if not quiet:
        _tell("mole: warning:", typer.colors.YELLOW, text, problems)


def warn_of(error: MoleError, *, quiet: bool = False) -> None:
    """What would have been an error, had the person not said to go on."""
    warn(in_options(error), _problems(error), quiet=quiet)


def note(text: str, *, quiet: bool = False) -> None:
    """What the person may want to know."""
    if not quiet:
        _tell("mole: note:", typer.colors.CYAN, text)


def say(text: str, *, quiet: bool = False) -> None:
    """How the work goes, or what its result means: plain lines."""
    if not quiet:
        typer.echo(fit_to_print(text), err=True)


def _tell(prefix: str, colour: str, text: str, problems: Sequence[str] = ()) -> None:
    """A line on stderr; its prefix is coloured on a terminal, and nowhere else."""
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        prefix = typer.style(prefix, fg=colour, bold=True)
    typer.echo(f"{prefix} {fit_to_print(f'{text}:' if problems else text)}", err=True)
    for problem in problems:
        typer.echo(f"  - {fit_to_print(problem)}", err=True)


def _problems(error: MoleError) -> list[str]:
    several = error.problems if isinstance(error, ProblemsError) else ()
    return [in_options(problem) for problem in several]


@contextmanager
def warnings_said(*, quiet: bool) -> Iterator[None]:
    """Say at once what the library warns of; what is about people's privacy, in any case."""
    others = warnings.showwarning

    def show_warning(message: Warning | str, category: type[Warning], *about: Any, **more: Any) -> None:
        if issubclass(category, MoleWarning):
            warn(str(message), quiet=quiet and not issubclass(category, PrivacyWarning))
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


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Progress]:
    """A bar on stderr while work goes on; nothing when quiet, or when stderr is not a terminal."""
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


class InterruptedWork(Exception):  # noqa: N818  (no error of ours)
    """Ctrl-C, and a sentence about what is left and how to go on."""


@contextmanager
def when_interrupted(sentence: str | Callable[[], str]) -> Iterator[None]:
    """Give Ctrl-C a sentence that is true of this work; a function is asked when it happens."""
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedWork(sentence if isinstance(sentence, str) else sentence()) from None
