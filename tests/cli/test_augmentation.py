"""Views on the provider's command line, kept features and mixup on the developer's."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyrage
import pytest

import mole
from command import call, right
from deliveries import make_layer, write_npz
from mole.exchange.checkpoint_files import read_facts

IDENTITY = pyrage.x25519.Identity.generate()
OPENED = ["--layer", "layer.safetensors", "--key", "my.key", "--identity", "identity.txt"]
KEY = ["--key", "my.key", "--identity", "identity.txt"]
KEPT = "the augmented layer's output is computed once, and kept in memory: 24.6 kB"
NETWORK = """
import torch

def small():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 10)
    )
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Eight images to learn from and four for tests, delivered with three views of the former."""
    folder = tmp_path_factory.mktemp("place")
    write_npz(folder / "data.npz", train=8, test=4)
    mole.save(make_layer(), folder / "layer.safetensors")
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    (folder / "own_net.py").write_text(NETWORK)
    recipient = str(IDENTITY.to_public())
    right("keygen", "--layer", "layer.safetensors", "--recipient", recipient, "--out", "my.key", cwd=folder)
    done = call("deliver", "data.npz", *OPENED, "--views", 3, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (
        "mole: warning: each image of split 'train' leaves as 3 views: 24 rows of 8 images. "
        "Attacks need many rows under one core, so views make them easier"
    ) in " ".join(done.stderr.split())
    return folder


def test_rows_and_views_are_told_apart(place):
    for facts in (
        right("info", "delivery", cwd=place),
        right("deliver", "data.npz", *OPENED, "--views", 3, cwd=place),  # which is complete already
    ):
        assert facts["rows"] == {"test": 4, "train": 24}
        assert facts["views"] == {"train": 3}
    assert all(check["holds"] for check in right("verify", "delivery", cwd=place).values())
    assert right("ledger", "my.key", "--identity", "identity.txt", cwd=place)["rows"] == 28


def test_each_image_comes_back_once_and_each_row_has_its_place(place, tmp_path):
    right("recover", "delivery", *KEY, "--out", tmp_path / "r.npz", cwd=place)
    with np.load(tmp_path / "r.npz") as found, np.load(place / "data.npz") as truth:
        assert np.array_equal(found["x_train"].transpose(0, 2, 3, 1), truth["x_train"])
    right("recover", "delivery", *KEY, "--out", f"{tmp_path}/images/", "--data", "data.npz", cwd=place)
    assert len(list((tmp_path / "images").rglob("*.png"))) == 12
    right("recover", "delivery", *KEY, "--ids", tmp_path / "ids.parquet", cwd=place)
    table = pq.read_table(tmp_path / "ids.parquet")
    assert table.column_names == ["split", "index", "view", "row_id"]
    assert table["view"].to_pylist() == [0] * 4 + [0, 1, 2] * 8


@pytest.mark.parametrize("views", ["0", "163", "many"])
def test_a_wrong_number_of_views_is_a_wrong_call(place, views):
    done = call("deliver", "data.npz", *OPENED, "--views", views, "--out", "no", cwd=place)
    assert done.returncode == 2
    assert "--views" in done.stderr
    assert not (place / "no").exists()


def test_another_number_of_views_is_another_delivery(place):
    done = call("deliver", "data.npz", *OPENED, cwd=place)
    assert done.returncode == 1
    assert "made with another number of views: choose another place, or replace it: give --force" in (
        " ".join(done.stderr.split())
    )


def test_training_says_that_it_keeps_features_and_gives_the_same_network(place, tmp_path):
    files = {}
    for option, is_said in (
        ((), True),
        (("--no-cache-features",), False),
        (("--cache-features", "-q"), False),
    ):
        out = tmp_path / f"{len(files)}.safetensors"
        done = call(
            "train", "delivery", "--network", "own_net:small", "--epochs", 2, "--batch-size", 8, *option,
            "--out", out, cwd=place,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (KEPT in done.stderr) == is_said
        files[option] = out.read_bytes()
    assert len(set(files.values())) == 1
    out = tmp_path / "mixed.safetensors"
    call(
        "train", "delivery", "--network", "own_net:small", "--epochs", 2, "--batch-size", 8, "--mixup", 1,
        "--out", out, cwd=place,
    )  # fmt: skip
    assert out.read_bytes() not in files.values()
    assert read_facts(out).training["mixup"] == 1
