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
from mole.provider.engines import ENGINES
from mole.scheme.augmented import LAYER_DTYPES
from mole.scheme.morphing import CORE_KINDS
from mole.sources.preparation import MODES, RESIZES

COMMANDS = {name: load_command(name) for name in ENTRIES}
ROLES = {
    "review", "keygen", "deliver", "morph", "recover", "export-layer", "train", "predict", "info", "verify",
    "analyse", "demo", "evaluate",
}  # fmt: skip


def test_every_command_is_there():
    assert set(COMMANDS) >= ROLES


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_stands_at_the_end_and_can_be_typed(name):
    _, example = help_of(name).split("Example: ")  # once, and nothing but the example behind it
    program, command, *arguments = shlex.split(example.replace("\\\n", " "))
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
    assert done.stdout.splitlines()[-1] == str(
        [f"mole.cli.{name}" for name in ("app", "fit_to_print", "help_text", "terminal", "wrong_calls")]
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name):
    silent = [part.name for part in COMMANDS[name].params if not (getattr(part, "help", "") or "").strip()]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_writes_a_file_has_the_same_rule(name):
    options = {option for part in COMMANDS[name].params for option in part.opts}
    assert ("--force" in options) == ("--out" in options and name != "keygen")  # a key is never lost
    assert options >= {"--json", "--quiet"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_thing_has_the_same_name_everywhere(name):
    """What a command works on is its one argument; each option means and takes the same in all commands."""
    arguments = [part.metavar for part in COMMANDS[name].params if part.param_type_name == "argument"]
    assert arguments in ([], ["DATA"], ["DELIVERY"], ["FILE"], ["KEY"], ["make"], ["NAME"])
    takes = {
        "--data": "DATA", "--public": "DATA", "--layer": "FILE", "--key": "FILE", "--network": "NAME",
        "--checkpoint": "FILE", "--weights": "FILE", "--split": "NAME", "--device": "NAME", "--seed": "N",
    }  # fmt: skip
    for part in COMMANDS[name].params:
        for option in part.opts:
            assert part.metavar == takes.get(option, part.metavar), option
            assert option not in {"--model", "--truth", "--first-layer", "--overwrite"}


def help_of(name: str | None) -> str:
    done = CliRunner().invoke(app, ["--help"] if name is None else [name, "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_the_help_reads_well_at_80_columns(name):
    """No line is too long, nothing speaks Python, and the text has room beside the names."""
    text = help_of(name)
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"<\w+>|list\[|\bbool\b|[│╭╰]|9223372036854775807", text)
    for block in re.split(r"\n\n", text):
        title, *lines = block.splitlines()
        if re.fullmatch(r"[A-Z][\w ]*:", title):
            starts = {len(found[0]) for line in lines if (found := re.match(r"  \S.*?  +(?=\S)", line))}
            starts |= {len(line) - len(line.lstrip()) for line in lines if line.startswith("   ")}
            assert len(starts) == 1, block  # one column
            assert 78 - starts.pop() >= 40


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_has_every_option_once(name):
    text, _ = help_of(name).split("Example: ")
    for part in COMMANDS[name].params:
        for option in (*part.opts, *part.secondary_opts):
            if option.startswith("--"):
                assert len(re.findall(rf"(?m)^  (?:-\w, |--[a-z-]+ / )?{option}(?![\w-])", text)) == 1, (
                    option
                )


def test_the_help_of_all_ends_with_an_example():
    assert re.search(r"Example: mole demo\s*$", help_of(None))


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
    assert f"  --{option.replace('_', '-')} {'|'.join(choices)}" in help_of(name)


def test_the_ledger_says_what_asks_for_no_passphrase():
    assert "its fingerprint, which needs no passphrase" in " ".join(help_of("ledger").split())
