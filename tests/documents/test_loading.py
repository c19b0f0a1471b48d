"""What is really loaded: nothing heavy on the provider's side, next to nothing before a command runs."""

import subprocess
import sys

import pytest

from imports import HEAVY, PROVIDERS_WORK

DEVELOPERS_WORK = """
import pkgutil, importlib, mole.torch
for module in pkgutil.walk_packages(mole.torch.__path__, "mole.torch."):
    importlib.import_module(module.name)
"""

SHARD = """
import numpy as np, pathlib, tempfile
from mole.exchange.shards import Shard, write_shard
with tempfile.TemporaryDirectory() as folder:
    rows, labels = np.ones((2, 4), np.float32), np.array([0, 1])
    write_shard(Shard(rows, labels, ["a", "b"], {}), (1, 2, 2), pathlib.Path(folder, "shard"))
"""


def loaded_after(program: str, names: tuple[str, ...]) -> list[str]:
    report = f"\nimport sys\nfor name in {names!r}:\n    if name in sys.modules: print(name)"
    done = subprocess.run(
        [sys.executable, "-c", program + report], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_the_provider_loads_nothing_heavy():
    assert loaded_after(PROVIDERS_WORK, HEAVY) == []


def test_the_command_loads_nothing_heavy():
    assert loaded_after("import mole.cli.app", HEAVY) == []


def test_the_commands_entry_loads_next_to_nothing():
    """So that Ctrl-C is heard from the start."""
    assert loaded_after("import mole.cli", ("numpy", "typer")) == []


def test_that_the_tests_above_can_fail():
    assert loaded_after(PROVIDERS_WORK + "\nmole.deliver", HEAVY) == ["pyarrow"]


def test_writing_a_shard_does_not_load_pandas():
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert loaded_after(SHARD, ("pandas",)) == []
    assert loaded_after(SHARD + "\nimport pyarrow; pyarrow.array(['a'])", ("pandas",)) == ["pandas"]


def test_the_developers_side_never_loads_the_key():
    assert loaded_after(DEVELOPERS_WORK, ("mole.provider", "mole.provider.keys")) == []


@pytest.mark.parametrize("room", ["exchange.verify", "attacks", "analysis"])
def test_rooms_without_the_key_never_load_it(room):
    assert loaded_after(f"import mole.{room}", ("mole.provider", "mole.provider.keys")) == []
