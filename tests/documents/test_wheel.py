"""The wheel, installed without extras into an empty environment, does the provider's work."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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


def requirements_of(metadata: Iterable[str]) -> list[Requirement]:
    """Those that hold without extras, of what a package says that it requires."""
    found = [Requirement(text) for text in metadata]
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]


def packages_for(requirements: list[Requirement]) -> Iterator[Distribution]:
    """What is installed here of some requirements, and of theirs in turn."""
    waiting, seen = list(requirements), set()
    while waiting:
        package = distribution(waiting.pop().name)
        if package.name not in seen:
            seen.add(package.name)
            waiting += requirements_of(package.requires or ())
            yield package


def link(package: Distribution, folder: Path) -> None:
    """Install a package into a folder, by links to where it is installed here."""
    for name in {path.parts[0] for path in package.files or () if path.parts[0] != ".."}:
        if not (folder / name).exists():
            (folder / name).symlink_to(str(package.locate_file(name)))


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory) -> Path:
    """A Python that has the wheel and what it says it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("morphed_learning-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(*PIP, "--python", python, "install", "--no-compile", "--no-deps", wheel)
    (packages,) = folder.glob("venv/lib/python*/site-packages")
    (metadata,) = packages.glob("morphed_learning-*.dist-info")
    for package in packages_for(requirements_of(Distribution.at(metadata).requires or ())):
        link(package, packages)
    run(*PIP, "--python", python, "check")  # all are there, in versions that fit
    return python


def test_the_wheel_does_the_providers_work_without_extras(empty_python, tmp_path):
    program = PROVIDERS_WORK + NEEDS_TORCH + REPORT
    output = run(empty_python, "-I", "-c", program, cwd=tmp_path).splitlines()
    assert output == ["mole.torch needs PyTorch: in the project's folder, pip install '.[torch]'", "[]"]
    installed = run(*PIP, "--python", empty_python, "list", "--format=freeze")
    assert "torch==" not in installed


def test_the_wheel_brings_the_command(empty_python, tmp_path):
    assert run(empty_python.with_name("mole"), "--version", cwd=tmp_path).startswith("mole 0.")


def test_the_wheel_brings_the_pages(empty_python, tmp_path):
    for room, wanted in {
        "audit": {
            "page.html.j2",
            "pieces.html.j2",
            "protected_page.html.j2",
            "page.css",
            "summary.html.j2",
        },
        "playground": {"playground.html", "playground.css", "playground.js"},
    }.items():
        program = (
            f"from importlib.resources import files; print(*files('mole').joinpath('{room}').iterdir())"
        )
        names = [Path(path).name for path in run(empty_python, "-I", "-c", program, cwd=tmp_path).split()]
        assert wanted <= set(names)
