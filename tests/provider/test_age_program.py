"""The key at rest and the standard program `age`: each opens what the other wrote."""

import os
import shutil
import subprocess

import pytest

import mole
from mole.provider.keys.key_file import write_key_text
from small_keys import IDENTITY, RECIPIENT, SEED, same, small_key

needs_age = pytest.mark.skipif(
    shutil.which("age") is None, reason="the age program is not installed (Debian: apt install age)"
)


@pytest.fixture
def key() -> mole.MorphKey:
    return small_key()


@needs_age
def test_the_age_program_reads_our_file(key, tmp_path):
    key.save(tmp_path / "provider.key", recipients=[RECIPIENT])
    (tmp_path / "identity").write_text(f"# a comment\n{IDENTITY}\n")
    done = subprocess.run(
        ["age", "--decrypt", "--identity", tmp_path / "identity", tmp_path / "provider.key"],
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == write_key_text(key.parameters, SEED)


@needs_age
def test_we_read_the_age_programs_file(key, tmp_path):
    for armour in ([], ["--armor"]):
        path = tmp_path / f"from-age{len(armour)}.key"
        subprocess.run(
            ["age", "--encrypt", *armour, "--recipient", RECIPIENT, "--output", path],
            input=write_key_text(key.parameters, SEED).encode(),
            check=True,
        )
        assert same(mole.MorphKey.load(path, identities=[f"# comment\n{IDENTITY}\n"]), key)


@needs_age
def test_passphrase_files_work_both_ways_with_the_age_program(key, tmp_path):
    """The age program asks on the terminal, so it gets one."""
    key.save(tmp_path / "ours.key", "a passphrase")
    text = run_on_terminal(["age", "--decrypt", str(tmp_path / "ours.key")], ["a passphrase"])
    assert f"seed: {SEED.hex()}" in text

    (tmp_path / "text").write_text(write_key_text(key.parameters, SEED))
    theirs = tmp_path / "theirs.key"
    command = ["age", "--passphrase", "--output", str(theirs), str(tmp_path / "text")]
    run_on_terminal(command, ["a passphrase", "a passphrase"])
    assert same(mole.MorphKey.load(theirs, "a passphrase"), key)


def run_on_terminal(command: list[str], answers: list[str]) -> str:
    """Run a program on a pseudo-terminal and answer its prompts; what it printed."""
    import pty

    process, terminal = pty.fork()
    if process == 0:
        os.execvp(command[0], command)
    output = b""
    waiting = list(answers)
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
        if waiting and output.rstrip().endswith(b":"):
            os.write(terminal, waiting.pop(0).encode() + b"\n")
            output += b"\n"
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0, output
    return output.decode()
