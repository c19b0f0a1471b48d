"""The help of every command: an example at its end, and a word on every option."""

import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mole.cli.app import COMMANDS as ENTRIES
from mole.cli.app import app, load_command
from mole.exchange.shards import DTYPES
from mole.provider.deliver import ENGINES
from mole.scheme.augmented import LAYER_DTYPES
from mole.scheme.morphing import CORE_KINDS
from mole.sources.preparation import MODES, RESIZES

COMMANDS = {name: load_command(name) for name in ENTRIES}
ROLES = {
    "review", "keygen", "deliver", "morph", "recover", "export-layer", "train", "predict", "info", "verify",
    "analyze", "demo", "evaluate",
}  # fmt: skip


def test_every_command_is_there():
    assert set(COMMANDS) >= ROLES


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_stands_at_the_end_and_can_be_typed(name):
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    _, example = done.output.split("Example: ")  # once, and nothing but the example behind it
    program, command, *arguments = shlex.split(example)
    assert (program, command) == ("mole", name)
    assert COMMANDS[name].make_context(name, arguments).params


def test_that_an_example_with_a_wrong_option_would_fail():
    with pytest.raises(Exception, match="No such option"):
        COMMANDS["verify"].make_context("verify", ["delivery", "--nonsense"])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_help_of_each_says(name):
    summary, *_ = COMMANDS[name].help.splitlines()
    assert summary == ENTRIES[name].summary


def test_that_listing_the_commands_loads_none_of_them():
    program = "import sys; from mole.cli.app import app; app(['--help'], standalone_mode=False); "
    program += "print(sorted(name for name in sys.modules if name.startswith('mole.cli.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['mole.cli.app', 'mole.cli.terminal']"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name):
    silent = [part.name for part in COMMANDS[name].params if not (getattr(part, "help", "") or "").strip()]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_writes_a_file_has_the_same_rule(name):
    options = {option for part in COMMANDS[name].params for option in part.opts}
    has_rule_of_its_own = {"keygen", "demo", "audit"}  # a key is never lost, and they want a new place
    if "--out" in options and name not in has_rule_of_its_own:
        assert "--force" in options
    else:
        assert "--force" not in options


def test_the_help_of_all_ends_with_an_example():
    done = CliRunner().invoke(app, ["--help"])
    assert re.search(r"Example: mole demo\s*$", done.output)


@pytest.mark.parametrize(
    ("name", "option", "choices"),
    [
        ("deliver", "dtype", DTYPES),
        ("deliver", "layer_dtype", LAYER_DTYPES),
        ("deliver", "mode", MODES),
        ("deliver", "resize", RESIZES),
        ("deliver", "engine", ENGINES),
        ("keygen", "core", CORE_KINDS),
        ("audit", "core", CORE_KINDS),
    ],
)
def test_the_choices_are_those_of_the_library(name, option, choices):
    done = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "250"})
    lines = [line for line in done.output.splitlines() if f"--{option.replace('_', '-')} " in line]
    assert f"<{'|'.join(choices)}>" in lines[0]
