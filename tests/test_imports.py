"""The import boundaries: which part may know which, and what the provider's side never loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "mole"
HEAVY = ("torch", "pyarrow", "ray", "scipy", "transformers")

PROVIDERS_WORK = """
import numpy as np
import mole
layer = mole.FirstLayer.conv(np.ones((2, 1, 3, 3)), None, input_shape=(1, 6, 6))
key = mole.MorphKey.generate(layer.input_shape)
morphed = mole.morph(np.ones((2, 1, 6, 6)), key)
mole.augment(layer, key).features(morphed)
mole.unmorph(morphed, key)
"""
REPORT = f"\nimport sys; print([name for name in {HEAVY} if name in sys.modules])"


def heavy_modules_after(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program + REPORT], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_provider_loads_nothing_heavy():
    assert heavy_modules_after(PROVIDERS_WORK) == "[]"


def test_the_command_loads_nothing_heavy():
    assert heavy_modules_after("import mole.cli.app") == "[]"


def test_the_commands_entry_loads_next_to_nothing():
    """So that Ctrl-C is heard from the start."""
    program = "import mole.cli, sys; print([name for name in ('numpy', 'typer') if name in sys.modules])"
    assert heavy_modules_after(program) == "[]\n[]"


def test_that_the_test_above_can_fail():
    assert heavy_modules_after(PROVIDERS_WORK + "\nmole.torch") == "['torch']"


def imports_of(file: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def offenders(part: str, forbidden: tuple[str, ...]) -> list[str]:
    target = SOURCE / part
    files = sorted(target.rglob("*.py")) if target.is_dir() else [target.with_suffix(".py")]
    assert files
    return [
        f"{file.name} imports {name}"
        for file in files
        for name in sorted(imports_of(file))
        if any(name == root or name.startswith(root + ".") for root in forbidden)
    ]


PURE = ["geometry", "normalisation", "layer", "d2r", "convolve", "morphing", "augmented", "analysis"]
INPUT_OUTPUT = ("pathlib", "io", "tempfile", "shutil", "socket", "subprocess", "safetensors", "pyrage")


@pytest.mark.parametrize("part", PURE)
def test_pure_parts_do_no_input_or_output(part):
    framework = ("torch", "pyarrow", "ray", "typer", "rich")
    rooms = ("mole.keys", "mole.files", "mole.torch", "mole.cli", "mole.provider")
    assert offenders(part, INPUT_OUTPUT + framework + rooms) == []
    target = SOURCE / part
    for file in target.rglob("*.py") if target.is_dir() else [target.with_suffix(".py")]:
        names = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
        assert not names & {"open", "print", "input"}


def test_the_developers_side_knows_nothing_of_keys():
    assert offenders("torch", ("mole.keys", "mole.provider", "pyrage")) == []


@pytest.mark.parametrize("part", ["manifest", "artefacts", "probes", "verify"])
def test_what_the_developer_checks_a_delivery_with_knows_nothing_of_keys(part):
    secret = ("deliver", "recover", "probe_making", "rows", "order", "skipped", "finishing", "ledger")
    forbidden = ("mole.keys", "mole.provider", *(f"mole.delivery.{name}" for name in secret))
    assert offenders(f"delivery/{part}", forbidden) == []


def test_secrets_come_from_no_ordinary_generator():
    assert offenders("keys", ("random", "numpy.random")) == []
    attackers = ("attacks", "audit")  # they guess; they hold no secret
    others = [file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] not in attackers]
    assert not [file for file in others if "np.random" in code_of(file)]


def test_attacks_can_not_reach_the_key_or_the_truth():
    secret = ("mole.keys", "mole.provider", "mole.delivery", "mole.data", "mole.audit", "pyrage")
    assert offenders("attacks", secret) == []
    assert offenders("audit/scoring", ("mole.keys", "mole.provider", "mole.delivery")) == []


def code_of(file: Path) -> str:
    """A file's code without its docstrings, which may show examples."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    return ast.unparse(tree)


def test_nothing_imports_the_command_line():
    others = [path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()]
    for part in sorted({*others} - {"cli", "__pycache__"}):
        assert offenders(part, ("mole.cli",)) == []


def test_what_reports_progress_is_said_once():
    said = [file.name for file in SOURCE.rglob("*.py") if "Callable[[int, int], None]" in code_of(file)]
    assert said == ["progress.py"]


def test_that_the_boundary_tests_can_fail():
    assert offenders("keys", ("pyrage",)) == ["age.py imports pyrage"]
    assert offenders("torch", ("torch",))
