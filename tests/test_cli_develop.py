"""The developer's commands: mistakes are one sentence, and nothing is left behind."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import mole
from deliveries import make_key, make_layer, write_npz
from mole.data.opening import open_source
from mole.delivery.deliver import deliver
from mole.files.store import LocalStore

pytestmark = pytest.mark.timeout(600)

NETWORK = """
import torch

def small():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 10)
    )

def normalising():
    return torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.Conv2d(3, 4, 3))

def broken():
    raise RuntimeError("no")

def nothing():
    return None
"""


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("mole"), *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("developer")
    (folder / "network.py").write_text(NETWORK)
    (folder / "text.txt").write_text("just text")
    (folder / "empty").mkdir()
    (folder / "text.pt").write_text("just text")
    torch.save({"a.weight": torch.ones(4, 3, 3, 3), "a.bias": torch.zeros(4)}, folder / "weights.pt")
    source = open_source(str(write_npz(folder / "data.npz")))
    for name, seed in (("delivery", 0), ("other", 1)):
        deliver(source, make_layer(), make_key(seed), LocalStore(folder / name))
    done = run("train", "delivery", "--network", "network:small", "--epochs", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_file_of_weights_is_exported_by_its_names(place, tmp_path):
    out = tmp_path / "l.safetensors"
    done = run(
        "export-layer", "weights.pt", "--input-shape", "3x8x8", "--padding", 1, "--out", out, cwd=place
    )
    assert done.returncode == 0, done.stderr
    layer = mole.load(out)
    assert layer.output_shape == (4, 8, 8)
    assert np.array_equal(layer.weight, np.ones((4, 3, 3, 3)))


SHAPE = ["--input-shape", "3x8x8"]
MISTAKES = [
    (["export-layer", "network:missing", *SHAPE], "missing"),
    (["export-layer", "nowhere:small", *SHAPE], "nowhere"),
    (["export-layer", "network:broken", *SHAPE], "could not make a model"),
    (["export-layer", "network:nothing", *SHAPE], "not a torch.nn.Module"),
    (["export-layer", "network:normalising", *SHAPE], "goes through native_batch_norm"),
    (["export-layer", "network:small", "--input-shape", "3,8,8"], "write it as 3x32x32"),
    (["export-layer", "network:small", "--input-shape", "3x9x9"], "does not run on a batch"),
    (["export-layer", "network:small", *SHAPE, "--mean", "0.5,0.5,0.5"], "both --mean and --std"),
    (["export-layer", "network:small", *SHAPE, "--weights", "text.pt"], "text.pt"),
    (["export-layer", "network:small", *SHAPE, "--weights", "missing.pt"], "missing.pt"),
    (["export-layer", "weights.pt", *SHAPE, "--tensor", "b.weight"], "no weight 'b.weight'"),
    (["export-layer", "text.pt", *SHAPE], "text.pt"),
    (["export-layer", "lenet", *SHAPE], "no built-in network 'lenet'"),
    (["train", "nowhere"], "nowhere has no manifest.json"),
    (["train", "empty"], "empty has no manifest.json"),
    (["train", "delivery", "--network", "lenet"], "no built-in network 'lenet'"),
    (["train", "delivery", "--network", "network:small", "--weights", "weights.pt"], "weights.pt"),
    (["train", "delivery", "--network", "small_resnet"], "does not fit"),
    (
        ["predict", "missing.safetensors", "delivery", "--split", "test"],
        "missing.safetensors can not",
    ),
    (["predict", "text.txt", "delivery", "--split", "test"], "text.txt"),
    (["predict", "model.safetensors", "delivery", "--network", "network:small"], "choose one with --split"),
    (["predict", "model.safetensors", "delivery", "--split", "test"], "give the model"),
    (
        ["predict", "model.safetensors", "other", "--split", "test", "--network", "network:small"],
        "key",
    ),
    (["predict", "model.safetensors", "delivery", "--split", "none", "--network", "network:small"], "none"),
    (["review", "text.txt", "--data", "data.npz"], "text.txt is not a layer file"),
    (["demo", "--out", "empty"], "empty exists already"),
]


@pytest.mark.parametrize(("call", "sentence"), MISTAKES, ids=lambda value: " ".join(value)[:60])
def test_a_mistake_is_one_sentence_and_nothing_is_left_behind(place, call, sentence):
    before = {path for path in place.rglob("*") if "__pycache__" not in path.parts}
    out = [] if "--out" in call else ["--out", "new-output"]
    done = run(*call, *out, cwd=place)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("mole: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stdout == ""
    assert {path for path in place.rglob("*") if "__pycache__" not in path.parts} == before
