"""A processor that cannot do what PyTorch asks of it: the tests find out before it kills them."""

import subprocess
import sys
from pathlib import Path

import pytest

from processors import CANNOT, OLDER_INSTRUCTIONS, variables_for

SUPPORT = Path(__file__).parents[1] / "support"

DIES = """
import os, signal
os.kill(os.getpid(), signal.SIGILL)
"""
DIES_OF_NEW_INSTRUCTIONS = """
import os, signal
if os.environ.get("ONEDNN_MAX_CPU_ISA") != "AVX512_CORE":
    os.kill(os.getpid(), signal.SIGILL)
"""


@pytest.mark.parametrize(
    ("program", "variables"),
    [
        ("pass", {}),
        ("raise SystemExit(1)", {}),
        (DIES_OF_NEW_INSTRUCTIONS, OLDER_INSTRUCTIONS),
        (DIES, {CANNOT: "1"}),
    ],
    ids=["works", "fails by itself", "needs older instructions", "dies"],
)
def test_a_program_is_tried_in_a_process_of_its_own(program, variables, monkeypatch):
    for name in (CANNOT, *OLDER_INSTRUCTIONS):
        monkeypatch.delenv(name, raising=False)
    assert variables_for(program) == variables


CONFTEST = """
from pathlib import Path
from processors import prepare

def pytest_configure(config):
    prepare(config, {program!r})
"""
ONE_FILE = """
import os
from processors import needs_16_bits

def test_variable():
    assert os.environ.get("ONEDNN_MAX_CPU_ISA") == {expected!r}

@needs_16_bits
def test_product():
    pass
"""


@pytest.mark.parametrize(
    ("program", "expected", "outcome"),
    [
        (DIES_OF_NEW_INSTRUCTIONS, "AVX512_CORE", "4 passed"),
        (DIES, None, "2 passed, 2 skipped"),
    ],
    ids=["needs older instructions", "dies"],
)
def test_workers_are_told_and_do_not_try_themselves(tmp_path, monkeypatch, program, expected, outcome):
    for name in (CANNOT, *OLDER_INSTRUCTIONS):
        monkeypatch.delenv(name, raising=False)
    counted = f"open({str(tmp_path / 'tries')!r}, 'a').write('x')\n{program}"
    (tmp_path / "conftest.py").write_text(CONFTEST.format(program=counted))
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(ONE_FILE.format(expected=expected))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {SUPPORT}\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # only that of workers is needed
    command = ["-m", "pytest", "-q", "-p", "xdist.plugin", "-n", "2", "--dist", "loadfile"]
    done = subprocess.run(
        [sys.executable, *command, "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert outcome in done.stdout, done.stdout + done.stderr
    assert len((tmp_path / "tries").read_text()) == 2  # once as it is, once with older instructions
