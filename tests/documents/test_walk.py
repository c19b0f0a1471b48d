"""`tools/walk.py` counts what it says that it counts."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"

ONE = """
import threading
from small.inner.two import Thing, decorate

@decorate
def begin():
    help_out()
    numbers = [(lambda n: n)(n) for n in range(3)]
    thread = threading.Thread(target=Thing().work)
    thread.start()
    thread.join()
    help_out()

def help_out():
    def inside():
        pass
    inside()

def never_called():
    pass
"""
TWO = """
def decorate(function):
    return function

class Thing:
    def work(self):
        self.size

    @property
    def size(self):
        return 1
"""


@pytest.fixture
def walk_tool():
    spec = importlib.util.spec_from_file_location("walk", TOOLS / "walk.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """A package with two files, one of them in a folder of a folder."""
    package = tmp_path / "small"
    (package / "inner").mkdir(parents=True)
    (package / "one.py").write_text(ONE)
    (package / "inner" / "two.py").write_text(TWO)
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    for name in [name for name in sys.modules if name.split(".")[0] == "small"]:
        del sys.modules[name]


def test_each_def_counts_once_in_the_order_of_calls(walk_tool, small):
    walk = walk_tool.Walk(small)
    with walk.watched():
        from small.one import begin

        begin()
    assert [":".join(step) for step in walk.steps] == [
        "one.py:begin",
        "one.py:help_out",
        "one.py:help_out.inside",
        "inner/two.py:Thing.work",
        "inner/two.py:Thing.size",
    ]
    assert walk.totals() == {"files": 2, "functions": 5, "changes of file": 1, "changes of package": 1}


def test_a_folder_in_a_folder_is_the_same_package(walk_tool):
    walk = walk_tool.Walk(Path("any"))
    walk.steps = [walk_tool.Step(file, "f") for file in ("a/b/one.py", "a/c/two.py", "three.py", "four.py")]
    assert walk.totals() == {"files": 4, "functions": 4, "changes of file": 3, "changes of package": 1}


def test_a_delivery_can_be_followed():
    done = _walk("deliver")
    assert done.returncode == 0, done.stderr
    steps = re.findall(r"^ {4}(\S+\.py):(\S+)$", done.stdout, re.MULTILINE)
    totals = {
        name: int(count) for count, name in re.findall(r"^ +(\d+) ([a-z ]+)$", done.stdout, re.MULTILINE)
    }
    assert steps[0][0].startswith("cli/")
    assert any(function == "deliver" for _, function in steps)
    assert len(set(steps)) == len(steps) == totals["functions"]
    assert len({file for file, _ in steps}) == totals["files"]
    assert 0 < totals["changes of package"] < totals["changes of file"] < totals["functions"]


def test_the_figures_of_version_0_3_are_kept():
    kept = json.loads((TOOLS / "walk-0.3.json").read_text())
    assert set(kept) == {"deliver", "train", "audit"}
    assert kept["deliver"]["files"] == 46


def test_a_folder_without_the_package_is_refused(tmp_path):
    done = _walk("deliver", "--src", str(tmp_path))
    assert done.returncode == 2
    assert "does not hold the package mole" in done.stderr


def _walk(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(TOOLS / "walk.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
