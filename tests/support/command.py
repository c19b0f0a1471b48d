"""The command `mole` in tests: as a process of its own, or quicker in this one."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from mole.cli import main
from warm_start import WarmStart

MOLE = Path(sys.executable).with_name("mole")

# For the front of a program that is to hear Ctrl-C, also where whoever started the tests ignores it, as the
# shell does for what a script runs in the background: who is started inherits that.
HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

# Sends itself a real SIGINT at a chosen moment: when something is imported, or a file is opened.
INTERRUPTS_ITSELF = """
import os, signal, sys
event, needle, *arguments = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)
waiting = True
def hook(name, about):
    global waiting
    if waiting and name == event and needle in str(about[0]):
        waiting = False
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
sys.argv = ["mole", *arguments]
from mole.cli import main
main()
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object, cwd: Path, **variables: str) -> Done:
    """In a process of its own, as a person would, with some environment variables added."""
    done = subprocess.run(
        [MOLE, *map(str, arguments)],
        cwd=cwd, env={**os.environ, **variables},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def call(*arguments: object, cwd: Path) -> Done:
    """In this process, without the seconds that loading takes; an uncaught exception fails the test."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        _at_home_in(cwd),
        patch.object(sys, "argv", ["mole", *map(str, arguments)]),
        Path(os.devnull).open() as nothing,
        patch.object(sys, "stdin", nothing),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())


def right(*arguments: object, cwd: Path) -> dict:
    """The result of a call that must work."""
    done = call(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def interrupted_at(
    event: str, needle: str, *arguments: object, cwd: Path, warm: WarmStart | None = None
) -> Done:
    """A process of its own that gets a SIGINT when it first imports or opens a certain thing.

    One that is to be interrupted while it loads has nothing loaded when it begins.
    """
    if warm and event != "import":
        process = warm.begin(INTERRUPTS_ITSELF, "mole", event, needle, *arguments, cwd=cwd)
        return Done(*process.ended())
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTS_ITSELF, event, needle, *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def files_in(folder: Path) -> set[str]:
    """Everything in a folder that a command could have left there."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


@contextlib.contextmanager
def _at_home_in(folder: Path) -> Iterator[None]:
    """Work in a folder, and forget the modules that were loaded from it."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        inside = f"{folder.resolve()}{os.sep}"  # compared as text: there are thousands of modules
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(inside):
                del sys.modules[name]
