"""The wheel, installed without extras into an empty environment, does the provider's work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from imports import PROVIDERS_WORK, REPORT

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

NEEDS_TORCH = """
try:
    mole.torch
except mole.MoleError as error:
    print(error)
"""


def run(*command: object, **options) -> str:
    environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory) -> Path:
    """A Python that has the wheel and what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("morphed_learning-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(*PIP, "--python", python, "install", "--no-compile", wheel)
    return python


def test_the_wheel_does_the_providers_work_without_extras(empty_python, tmp_path):
    program = PROVIDERS_WORK + NEEDS_TORCH + REPORT
    output = run(empty_python, "-I", "-c", program, cwd=tmp_path).splitlines()
    assert output == ["mole.torch needs PyTorch: in the project's folder, pip install '.[torch]'", "[]"]
    installed = run(*PIP, "--python", empty_python, "list", "--format=freeze")
    assert "torch==" not in installed


def test_the_wheel_brings_the_command(empty_python, tmp_path):
    assert run(empty_python.with_name("mole"), "--version", cwd=tmp_path).startswith("mole 0.")


def test_the_wheel_brings_the_audits_page(empty_python, tmp_path):
    program = "from importlib.resources import files; print(*files('mole').joinpath('audit').iterdir())"
    names = [Path(path).name for path in run(empty_python, "-I", "-c", program, cwd=tmp_path).split()]
    assert {
        "page.html.j2",
        "pieces.html.j2",
        "protected_page.html.j2",
        "page.css",
        "summary.html.j2",
    } <= set(names)
