"""`mole experiment table2`, tiny, on the images of the package: killed, resumed, refused."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import call, files_in, right
from mole.torch.resume import ResumeFile

TINY = ["experiment", "table2", "--preset", "tiny", "--seeds", 1]
KEPT_BEFORE = 5  # epochs: two trainings, and half of the third
KILLED = f"""
import os, signal, sys
from mole.torch.resume import ResumeFile
keep, kept = ResumeFile.keep, []
def and_die(self, state):
    keep(self, state)
    kept.append(1)
    if len(kept) == {KEPT_BEFORE}:
        os.kill(os.getpid(), signal.SIGKILL)
ResumeFile.keep = and_die
sys.argv = ["mole", *sys.argv[1:]]
from mole.cli import main
main()
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = right(*TINY, cwd=folder)
    assert result == json.loads((folder / "results" / "table2.json").read_text())
    return folder


def result_in(folder: Path) -> dict:
    return json.loads((folder / "results" / "table2.json").read_text())


def pieces_in(folder: Path) -> dict[str, dict]:
    return {file.name: json.loads(file.read_text()) for file in (folder / "results/cache").glob("*.json")}


def test_a_killed_run_goes_on_to_the_same_numbers(undisturbed, tmp_path, monkeypatch):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, TINY)], cwd=tmp_path, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = files_in(tmp_path / "results")
    assert sum(name.endswith(".unfinished") for name in left) == 1
    assert "table2.json" not in left

    kept: list[int] = []
    keep = ResumeFile.keep
    monkeypatch.setattr(ResumeFile, "keep", lambda self, state: (keep(self, state), kept.append(1)))
    again = call(*TINY, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "2 of 8 trainings are finished already" in again.stderr
    assert len(kept) == 2 * 8 - KEPT_BEFORE  # no epoch was done twice
    assert result_in(tmp_path) == result_in(undisturbed)
    assert pieces_in(tmp_path) == pieces_in(undisturbed)  # first layers, to the last bit
    assert not [name for name in files_in(tmp_path) if name.endswith(".unfinished")]


def test_every_arm_is_trained(undisturbed):
    rows = result_in(undisturbed)["rows"]
    assert [(row["arm"], row["setting"]) for row in rows] == [
        ("plain", None),
        ("augmented", "other images"),
        ("without", None),
        ("augmented", "the same images"),
        ("no shuffle", "other images"),
        ("random", None),
        ("frozen", "other images"),
    ]
    areas = [row["auc"]["mean"] for row in rows]
    assert len({*areas}) == len(areas)  # each learned in its own way
    assert all(0 <= row["accuracy"]["mean"] <= 1 for row in rows)


def test_the_reports_figures_are_those_of_the_json(undisturbed):
    result, folder = result_in(undisturbed), undisturbed / "results"
    lines = [line for line in (folder / "table2.md").read_text().splitlines() if line.startswith("| Fash")]
    for row, line in zip(result["rows"], lines, strict=True):
        (shown,) = re.findall(r"([\d.]+) %", line)
        assert float(shown) == pytest.approx(100 * row["accuracy"]["mean"], abs=0.051)
    assert (folder / "table2.svg").read_text().count("no shuffle") == 1
    assert (folder / "table2.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_kept_is_not_trained_again(undisturbed, monkeypatch):
    kept: list[int] = []
    keep = ResumeFile.keep
    monkeypatch.setattr(ResumeFile, "keep", lambda self, state: (keep(self, state), kept.append(1)))
    before = result_in(undisturbed)
    done = call(*TINY, "--out", "again", "--cache", "results/cache", cwd=undisturbed)
    assert done.returncode == 0, done.stderr
    assert kept == []
    again = json.loads((undisturbed / "again" / "table2.json").read_text())
    assert again == before


@pytest.fixture
def place(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(256, size=(8, 28, 28), dtype=np.uint8), np.arange(8) % 2
    np.savez(tmp_path / "one.npz", x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    np.savez(tmp_path / "bare.npz", x_train=pixels, x_test=pixels)
    np.savez(tmp_path / "alone.npz", x_train=pixels, y_train=labels)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "table2.json").write_text("{}")
    (tmp_path / "text.txt").write_text("text")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("table2", ["--data", "missing.npz"], "missing.npz does not exist"),
        ("table2", ["--data", "text.txt"], "text.txt is not of a kind that can be read"),
        ("table2", ["--data", "alone.npz"], "alone.npz has no splits 'train' and 'test'"),
        ("table2", ["--data", "bare.npz"], "no labels"),
        ("table2", ["--data", "one.npz"], "give public ones, or a second set of images"),
        ("medical", ["--data", "one.npz", "--public", "bare.npz"], "no labels"),
        ("table2", ["--public", "one.npz"], "--public stands beside --data"),
        ("table2", ["--preset", "huge"], "huge"),
        ("table2", ["--front", "one.npz"], "--front means nothing for table2"),
        ("table2", ["--out", "taken"], "taken/table2.json exists already"),
        ("table2", ["--out", "text.txt"], "text.txt is a file, and results go into a folder"),
        ("table2", ["--out", "nowhere/out"], "there is no folder nowhere"),
        ("table3", [], "there is no experiment 'table3': give one of"),
    ],
)
def test_a_wrong_call_gets_one_sentence_and_writes_nothing(place, name, options, words):
    before = files_in(place)
    done = call("experiment", name, *options, cwd=place)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert files_in(place) == before
