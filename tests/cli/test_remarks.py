"""Errors, warnings and notes: told apart at a glance, coloured on a terminal and nowhere else."""

import contextlib
import io
import warnings

import pytest

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
