"""The developer's commands, and the one rule for outputs."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import mole
from command import call, files_in, right
from deliveries import make_key, make_layer, write_npz
from light_passphrases import save_lightly
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

NETWORK = """
import torch

def asking(input_shape, classes):
    channels, height, width = input_shape
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(4 * height * width, classes),
    )
"""
SHAPE = ["--input-shape", "3x8x8"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("developer")
    (folder / "my_models.py").write_text(NETWORK)
    torch.save(
        {"model": {"stem.weight": torch.ones(4, 3, 3, 3), "body.weight": torch.ones(4, 4, 3, 3)}},
        folder / "weights.pt",
    )
    mole.save(make_layer(), folder / "layer.safetensors")
    save_lightly(make_key(), folder / "my.key", "open sesame")
    (folder / "passphrase.txt").write_text("open sesame\n")
    source = open_source(str(write_npz(folder / "data.npz")))
    deliver(source, make_layer(), make_key(), LocalStore(folder / "delivery"))
    right("train", "delivery", "--network", "my_models:asking", "--epochs", 1, cwd=folder)
    return folder


def test_a_file_of_weights_is_exported_with_all_that_was_used(place, tmp_path):
    out = tmp_path / "l.safetensors"
    facts = right(
        "export-layer",
        "--network",
        "weights.pt",
        *SHAPE,
        "--stride",
        2,
        "--padding",
        1,
        "--out",
        out,
        cwd=place,
    )
    assert facts == {
        "layer": str(out), "tensor": "stem.weight", "kind": "conv2d", "output shape": [4, 4, 4],
        "kernel": [3, 3], "stride": [2, 2], "padding": [[1, 1], [1, 1]], "dilation": [1, 1], "groups": 1,
        "bias": False, "normalised": False,
    }  # fmt: skip
    layer = mole.load(out)
    assert layer.output_shape == (4, 4, 4)
    assert np.array_equal(layer.weight, np.ones((4, 3, 3, 3)))


def test_a_model_is_exported_with_the_name_of_its_layer(place, tmp_path):
    arguments = [
        "export-layer",
        "--network",
        "my_models:asking",
        *SHAPE,
        "--out",
        tmp_path / "l.safetensors",
    ]
    facts = right(*arguments, "--mean", "0.5,0.4,0.3", "--std", "0.2,0.2,0.2", cwd=place)
    assert (facts["tensor"], facts["padding"], facts["normalised"]) == ("0.weight", [[1, 1], [1, 1]], True)
    told = call(*arguments, "--force", cwd=place).stderr
    assert told.startswith(
        "mole: note: no --weights were given, so this is the first layer as my_models:asking"
    )


def test_a_factory_that_asks_for_shape_and_classes_predicts_too(place, tmp_path):
    out = tmp_path / "predictions.parquet"
    arguments = ["delivery", "--checkpoint", "model.safetensors", "--split", "test", "--out", out]
    assert right("predict", *arguments, "--network", "my_models:asking", cwd=place)["rows"] == 30
    assert pq.read_table(out).num_rows == 30


KEY = ["--key", "my.key", "--passphrase-file", "passphrase.txt"]
WRITERS = {
    "export-layer": ["--network", "my_models:asking", *SHAPE],
    "review": ["data.npz", "--layer", "layer.safetensors"],
    "recover": ["delivery", *KEY],
    "train": ["delivery", "--network", "my_models:asking", "--epochs", 1],
    "predict": ["delivery", "--split", "test", "--network", "my_models:asking"],
}


def test_a_signature_of_another_layer_is_removed_with_force_only(place, tmp_path):
    signature = tmp_path / "l.sig"
    signature.write_text("precious")
    arguments = [
        "export-layer",
        "--network",
        "my_models:asking",
        *SHAPE,
        "--out",
        tmp_path / "l",
        "--classes",
        100_001,
    ]
    done = call(*arguments, cwd=place)
    assert (done.returncode, signature.read_text()) == (1, "precious")
    assert done.stderr.startswith(f"mole: {signature} exists already: choose another name")
    right(*arguments, "--force", cwd=place)
    assert files_in(tmp_path) == {"l"}


@pytest.mark.parametrize("command", WRITERS)
def test_an_output_is_replaced_with_force_only(place, tmp_path, command):
    out = tmp_path / ("out.npz" if command == "recover" else "out")
    out.write_text("precious")
    arguments = [command, *WRITERS[command], "--out", out]
    done = call(*arguments, cwd=place)
    assert done.returncode == 1
    assert (
        done.stderr == f"mole: {out} exists already: choose another name, or give --force to replace it\n"
    )
    assert out.read_text() == "precious"
    done = call(*arguments, "--force", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert str(out) in json.loads(done.stdout).values()
    assert out.read_bytes() != b"precious"
    assert files_in(tmp_path) == {out.name}


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("out", ["nowhere/out", "text.txt/out", "folder", "/dev/null", "x" * 300])
def test_an_output_is_looked_at_before_the_work(tmp_path, command, out):
    if (command, out) == ("recover", "folder"):
        out = "folder/../folder.txt"  # it writes folders too, and text files never
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("just text")
    done = call(command, *WRITERS[command], "--out", out, "--force", cwd=tmp_path)  # nothing else is there
    assert done.returncode == 1
    assert done.stderr.replace("'", "").startswith(f"mole: {out} ")
    assert len(done.stderr.splitlines()) == 1
    assert files_in(tmp_path) == {"folder", "text.txt"}


def test_predictions_are_not_called_something_else(place, tmp_path):
    done = call("predict", "requests", "--out", tmp_path / "p.csv", cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mole: predictions are a Parquet file: give p.csv the ending .parquet\n"
    assert list(tmp_path.iterdir()) == []
