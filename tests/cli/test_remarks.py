"""Errors, warnings and notes: told apart at a glance, coloured on a terminal and nowhere else."""

import contextlib
import io
import warnings
from typing import Annotated

import pytest
import typer

from mole.cli.help_text import PlainCommand
from mole.cli.terminal import complain, complain_of, note, say, warn, warn_of, warnings_said
from mole.errors import MoleError, MoleWarning, PrivacyWarning, ProblemsError

RED, YELLOW, CYAN, RESET = "\x1b[31m", "\x1b[33m", "\x1b[36m", "\x1b[0m"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(function, *arguments, on: type[io.StringIO] = io.StringIO, **named) -> str:
    stream = on()
    with contextlib.redirect_stderr(stream):
        function(*arguments, **named)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("function", "prefix", "colour"),
    [(complain, "mole:", RED), (warn, "mole: warning:", YELLOW), (note, "mole: note:", CYAN)],
    ids=["error", "warning", "note"],
)
def test_each_has_its_prefix_and_its_colour_on_a_terminal(monkeypatch, function, prefix, colour):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert said(function, "so it is") == f"{prefix} so it is\n"
    shown = said(function, "so it is", on=Terminal)
    assert colour in shown
    assert shown.endswith(f"{prefix}{RESET} so it is\n")  # the sentence itself is not coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert said(function, "so it is", on=Terminal) == f"{prefix} so it is\n"


@pytest.mark.parametrize("function", [warn, note, say])
def test_quiet_leaves_out_what_is_no_error(function):
    assert said(function, "so it is", quiet=True) == ""
    assert said(function, "so it is", quiet=False) != ""


@pytest.mark.parametrize(("function", "prefix"), [(complain_of, "mole:"), (warn_of, "mole: warning:")])
def test_several_problems_stand_below_one_another(function, prefix):
    problems = [MoleError("a.png is empty"), MoleError("b.png is small", advice={"resize": "crop"})]
    lines = said(function, ProblemsError("2 images cannot be used", problems)).splitlines()
    below = ["  - a.png is empty", "  - b.png is small: give --resize crop"]
    assert lines == [f"{prefix} 2 images cannot be used:", *below]


def test_a_command_advises_no_option_that_it_does_not_have():
    def lose(skip_bad: Annotated[bool, typer.Option("--skip-bad")] = False) -> None:
        advice = {"resize": ("crop", "stretch"), "skip_bad": True}
        wrong = (
            MoleError("b.png is large", advice=advice),
            MoleError("c.png", advice={"label_column": None}),
        )
        raise ProblemsError("2 images cannot be used", wrong)

    alone = typer.Typer(add_completion=False)
    alone.command(cls=PlainCommand)(lose)
    with pytest.raises(ProblemsError) as caught:
        typer.main.get_command(alone)([], standalone_mode=False)
    below = ["  - b.png is large: give --skip-bad", "  - c.png"]
    assert said(complain_of, caught.value).splitlines()[1:] == below


def test_a_name_cannot_bring_its_own_colours():
    assert said(complain, "no \x1b[32mfile", on=Terminal).endswith("no \\x1b[32mfile\n")


def test_warnings_of_the_library_and_those_that_quiet_does_not_hide():
    def warned(*, quiet: bool) -> None:
        with warnings_said(quiet=quiet):
            warnings.warn("the key was used before", MoleWarning, stacklevel=1)
            warnings.warn("names may leave", PrivacyWarning, stacklevel=1)

    before, privacy = "mole: warning: the key was used before\n", "mole: warning: names may leave\n"
    assert said(warned, quiet=False) == before + privacy
    assert said(warned, quiet=True) == privacy
