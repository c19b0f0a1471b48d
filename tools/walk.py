"""How far a reader travels who follows a command through the code: the functions that it calls, in order.

    python tools/walk.py deliver            # prints the walk, then its totals
    python tools/walk.py audit --json       # the totals alone
    python tools/walk.py train --src other-checkout/src

Each function of the package `mole` counts once, where it is first called. What counts is what stands in a
file as `def`: functions, methods, properties and functions inside of others. Lambdas, comprehensions, class
bodies, module bodies and everything that is called while a module loads do not. A step to a function in
another file is a change of file. A step to another folder of `mole` is a change of package: folders inside
of a folder belong to it, and the files at the root are one package together. Threads take turns here, on
one core, so that the walk is the same each time.

The command runs in a small scenario that is made for it, through the command line alone, so that versions
with different insides can be compared.
"""

import argparse
import contextlib
import importlib
import inspect
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

SOURCES = Path(__file__).resolve().parents[1] / "src"
KEY = ("--key", "provider.key", "--passphrase-file", "passphrase.txt")
LAYER = ("--layer", "first-layer.safetensors")
EXPORT = (
    "export-layer",
    "--network",
    "network:tiny",
    "--input-shape",
    "1x8x8",
    "--mean",
    "0.5",
    "--std",
    "0.25",
)
KEYGEN = ("keygen", *LAYER, "--core", "orthogonal", "--out", *KEY[1:])
DELIVER = ("deliver", "images.npz", *LAYER, *KEY, "--out", "delivery")
TRAIN = ("train", "delivery", "--network", "network:tiny", "--epochs", "1", "--out", "model.safetensors")
AUDIT = ("audit", "delivery", *LAYER, *KEY, "--data", "images.npz", "--out", "audit")

WALKS = {"deliver": DELIVER, "train": TRAIN, "audit": AUDIT}
BEFORE = {
    "deliver": (EXPORT, KEYGEN),
    "train": (EXPORT, KEYGEN, DELIVER),
    "audit": (EXPORT, KEYGEN, DELIVER),
}

NETWORK = """
from torch import nn

def tiny(classes=10):
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, classes))
"""


class Step(NamedTuple):
    """The first call of a function: its file, as in `torch/training.py`, and its name."""

    file: str
    function: str

    @property
    def package(self) -> str:
        """The folder of `mole` that the file lies in, at whatever depth; '' for a file at the root."""
        return self.file.rpartition("/")[0].partition("/")[0]


class Walk:
    """Notes the first call of each function of a package."""

    def __init__(self, package: Path) -> None:
        self.steps: list[Step] = []
        self._root = f"{package}{os.sep}"
        self._known: set[CodeType] = set()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch all calls, those of new threads included."""
        threading.setprofile(self._notice)
        sys.setprofile(self._notice)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def totals(self) -> dict[str, int]:
        """How long the walk is."""
        pairs = list(pairwise(self.steps))
        return {
            "files": len({step.file for step in self.steps}),
            "functions": len(self.steps),
            "changes of file": sum(one.file != next_one.file for one, next_one in pairs),
            "changes of package": sum(one.package != next_one.package for one, next_one in pairs),
        }

    def _notice(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._known or not self._is_function(code) or self._is_loading(frame):
            return
        self._known.add(code)
        file = Path(code.co_filename.removeprefix(self._root)).as_posix()
        self.steps.append(Step(file, code.co_qualname.replace("<locals>.", "")))

    def _is_function(self, code: CodeType) -> bool:
        """Whether it is a `def` of the package: class bodies are not optimised, the rest has no name."""
        is_named = not code.co_name.startswith("<")
        return is_named and bool(code.co_flags & inspect.CO_OPTIMIZED) and self._is_ours(code)

    def _is_loading(self, frame: FrameType) -> bool:
        """Whether a module of the package is being loaded."""
        above = frame.f_back
        while above is not None:
            if above.f_code.co_name == "<module>" and self._is_ours(above.f_code):
                return True
            above = above.f_back
        return False

    def _is_ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self._root)


def main() -> None:
    """Make the scenario, walk, and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=WALKS)
    parser.add_argument("--json", action="store_true", help="print the totals alone, as JSON")
    parser.add_argument("--src", type=Path, default=SOURCES, help="the folder that holds the package mole")
    arguments = parser.parse_args()
    source = arguments.src.resolve()
    if not (source / "mole" / "__init__.py").exists():
        parser.error(f"{source} does not hold the package mole")
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        prepare(Path(folder), source, arguments.command)
        walk = follow(Path(folder), source, WALKS[arguments.command])
    if arguments.json:
        print(json.dumps(walk.totals(), indent=1))
    else:
        tell(walk)


def prepare(folder: Path, source: Path, command: str) -> None:
    """Everything that the command needs: images, a network, and what earlier commands make of them."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, count in (("train", 200), ("test", 40)):
        coarse = rng.integers(0, 256, (count, 4, 4), dtype=np.uint8)
        arrays[f"x_{split}"] = coarse.repeat(2, axis=1).repeat(2, axis=2)
        arrays[f"y_{split}"] = np.arange(count) % 10
    np.savez(folder / "images.npz", **arrays)
    (folder / "network.py").write_text(NETWORK)
    (folder / "passphrase.txt").write_text("a passphrase for a walk\n")
    for words in BEFORE[command]:
        done = subprocess.run(
            [sys.executable, "-c", "from mole.cli import main; main()", *words],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"mole {words[0]} failed: {done.stderr}")


def follow(folder: Path, source: Path, words: tuple[str, ...]) -> Walk:
    """Run a command in this process, and watch it."""
    sys.path.insert(0, str(source))
    entry = importlib.import_module("mole.cli").main
    package = importlib.import_module("mole").__file__
    if package is None or not Path(package).is_relative_to(source):
        raise SystemExit(f"mole was loaded from {package}, not from {source}")
    walk = Walk(source / "mole")
    sys.argv = ["mole", *words, "--quiet"]
    one_at_a_time()
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()), walk.watched():
        try:
            entry()
        except SystemExit as end:
            if end.code:
                raise
    return walk


def one_at_a_time() -> None:
    """Let a thread run until it waits for something, so that threads always meet in the same order."""
    sys.setswitchinterval(1000)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def tell(walk: Walk) -> None:
    """Print the walk, with a heading wherever it enters a package, and its totals."""
    package = None
    for step in walk.steps:
        if step.package != package:
            package = step.package
            print(f"mole/{package}")
        print(f"    {step.file}:{step.function}")
    print()
    for name, count in walk.totals().items():
        print(f"{count:6} {name}")


if __name__ == "__main__":
    main()
