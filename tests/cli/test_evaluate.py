"""`mole evaluate`, and what `mole train` and `mole predict` say of splits, classes and labels."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

import mole
from command import call, right, run
from deliveries import make_key, make_layer
from mole.exchange.checkpoint_files import read_facts
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

NETWORK = """
import torch

def small():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 3)
    )

def large():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 9)
    )
"""
CLASSES = ["cat", "dog\x1b[2J", "bird"]  # one that would clear a terminal
SMALL = ["--network", "my_scored:small"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A delivery of three splits, requests, and a network that was trained for two epochs."""
    folder = tmp_path_factory.mktemp("evaluate")
    (folder / "my_scored.py").write_text(NETWORK)
    rng, arrays = np.random.default_rng(0), {}
    for split, count in (("train", 60), ("val", 20), ("test", 30)):
        arrays[f"x_{split}"] = rng.integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
        arrays[f"y_{split}"] = rng.integers(0, 3, count)
    np.savez(folder / "data.npz", **arrays, classes=CLASSES)
    np.savez(folder / "new.npz", images=arrays["x_test"])
    layer, key = make_layer(), make_key()
    deliver(open_source(str(folder / "data.npz")), layer, key, LocalStore(folder / "delivery"))
    deliver(
        open_source(str(folder / "new.npz")), layer, key, LocalStore(folder / "requests"), layer_dtype=None
    )
    done = call("train", "delivery", *SMALL, "--epochs", 2, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said.json").write_text(json.dumps(done._asdict()))
    return folder


def test_a_training_names_its_splits(place):
    said = json.loads((place / "said.json").read_text())
    kept, first, second = said["stderr"].splitlines()
    assert kept.endswith("computed once, and kept in memory: 81.9 kB")  # of 60 rows and 20, in 4 channels
    for number, line in ((1, first), (2, second)):
        assert line.startswith(f"epoch {number}: loss ")
        assert ", accuracy " in line
        assert line.endswith(" %")
        assert ", on val " in line
    facts = dict(line.split("  ", 1) for line in said["stdout"].splitlines())
    assert list(facts) == ["model", "epochs", "loss", "accuracy", "best epoch"]
    assert [part.split()[0] for part in facts["accuracy"].split(", ")] == ["train", "val", "test"]
    assert facts["best epoch"].strip()[0] in "12"
    assert facts["best epoch"].endswith(" % on val")


def test_the_figures_are_those_of_the_answers(place, tmp_path):
    out = tmp_path / "p.parquet"
    told = right("predict", "delivery", *SMALL, "--split", "test", "-o", out, cwd=place)
    table = pq.read_table(out)
    labels, chances = table["label"].to_numpy(), np.array(table["probability"].to_pylist())
    assert set(table["class_name"].to_pylist()) <= set(CLASSES)
    facts = right("evaluate", "delivery", *SMALL, "--batch-size", 7, cwd=place)
    assert (
        facts["accuracy"]
        == told["accuracy"]
        == pytest.approx((chances.argmax(1) == labels).mean(), abs=1e-4)
    )
    assert facts["auc"] == pytest.approx(roc_auc_score(labels, chances, multi_class="ovr"), abs=2e-3)
    assert facts["confusion"] == confusion_matrix(labels, chances.argmax(1)).tolist()
    assert (facts["split"], facts["rows"], facts["classes"]) == ("test", 30, CLASSES)
    assert right("evaluate", "delivery", *SMALL, "--split", "val", cwd=place)["rows"] == 20


def test_scores_on_what_the_network_learnt_from_are_called_that(place):
    warning = "mole: warning: model.safetensors was trained on these very rows, split 'train' of delivery: "
    done = call("evaluate", "delivery", *SMALL, "--split", "train", cwd=place)
    assert done.returncode == 0
    assert done.stderr.startswith(warning)
    assert "a split called test" in done.stderr
    for split in ("val", "test"):
        assert call("evaluate", "delivery", *SMALL, "--split", split, cwd=place).stderr == ""
    arrays = np.load(place / "data.npz")
    np.savez(place / "later.npz", x_train=arrays["x_test"], y_train=arrays["y_test"], classes=CLASSES)
    deliver(str(place / "later.npz"), make_layer(), make_key(), place / "later")
    assert call("evaluate", "later", *SMALL, cwd=place).stderr == ""  # other rows, though called train


def test_the_table_has_a_line_for_each_class(place):
    done = call("evaluate", "delivery", *SMALL, "--quiet", cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    facts = right("evaluate", "delivery", *SMALL, cwd=place)
    *_, head, cat, dog, bird = (line.split() for line in done.stdout.splitlines())
    assert head == ["cat", "dog\\x1b[2J", "bird"]
    for line, counts in zip((cat, dog, bird), facts["confusion"], strict=True):
        assert [int(cell) for cell in line[1:]] == counts


def test_requests_are_called_requests(place, tmp_path):
    assert right("info", "requests", cwd=place)["rows"] == {"requests": 30}
    assert right("info", "delivery", cwd=place)["rows"] == {"train": 60, "val": 20, "test": 30}
    out = tmp_path / "p.parquet"
    told = right("predict", "requests", *SMALL, "--out", out, "--quiet", cwd=place)
    assert told == {"predictions": str(out), "rows": 30}  # nobody knows what is right
    done = call("evaluate", "requests", *SMALL, cwd=place)
    assert "requests has no labels to compare with: give a delivery with labels" in done.stderr


def test_more_epochs_go_on_and_too_many_outputs_are_remarked_upon(place, tmp_path):
    out = tmp_path / "model.safetensors"
    shutil.copy(place / "model.safetensors", out)
    done = call("train", "delivery", *SMALL, "--epochs", 3, "--out", out, cwd=place)
    assert done.returncode == 0, done.stderr
    resumed, third = done.stderr.splitlines()
    assert resumed == "resuming after epoch 2 of 3"
    assert third.startswith("epoch 3: loss ")
    assert read_facts(out).training["epochs"] == 3
    large = ["--network", "my_scored:large", "--epochs", 1, "--out", tmp_path / "large"]
    remark = "the network tells 9 classes apart and the data has 3: the others will never be right"
    said = call("train", "delivery", *large, cwd=place).stderr
    assert said.splitlines()[0] == f"mole: warning: {remark}"
    assert call("train", "delivery", *large, "--force", "--quiet", cwd=place).stderr == ""


def test_without_other_splits_nothing_is_said_of_them(tmp_path):
    arrays = {"x_train": np.zeros((8, 8, 8, 3), np.uint8), "y_train": np.arange(8) % 3}
    np.savez(tmp_path / "data.npz", **arrays)
    deliver(
        open_source(str(tmp_path / "data.npz")), make_layer(), make_key(), LocalStore(tmp_path / "delivery")
    )
    (tmp_path / "my_scored.py").write_text(NETWORK)
    facts = right("train", "delivery", *SMALL, "--epochs", 1, "--weight-decay", 0.01, cwd=tmp_path)
    assert set(facts) == {"model", "epochs", "loss", "accuracy"}
    assert set(facts["accuracy"]) == {"train"}


def test_one_mean_stands_for_all_channels(place, tmp_path):
    arguments = [
        "export-layer",
        "--network",
        "my_scored:small",
        "--input-shape",
        "3x8x8",
        "--out",
        tmp_path / "l",
    ]
    assert right(*arguments, "--mean", "0.5", "--std", "0.2,0.3,0.4", cwd=place)["normalised"] is True
    assert mole.load(tmp_path / "l").normalisation == mole.Normalisation((0.5,) * 3, (0.2, 0.3, 0.4))


@pytest.mark.parametrize("command", [["train", "nowhere"], ["evaluate", "nowhere"], ["predict", "nowhere"]])
def test_a_missing_file_is_told_before_pytorch_is_loaded(tmp_path, command):
    """A `torch` that cannot be imported stands in the way: whoever loads it fails otherwise."""
    (tmp_path / "torch.py").write_text("raise SystemExit('PyTorch was loaded')\n")
    done = run(*command, cwd=tmp_path, PYTHONPATH=f"{tmp_path}:{Path(mole.__file__).parents[1]}")
    assert (done.returncode, done.stderr) == (
        1, "mole: nowhere does not exist: give the folder of a delivery\n"
    )  # fmt: skip
