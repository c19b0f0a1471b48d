"""Mistakes that commands can meet: a folder that has what is needed to make them, and how they must end."""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyrage
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import mole
from command import call, files_in, right
from deliveries import make_key, make_layer, write_npz
from fronts import FEATURES, write_front
from light_passphrases import save_lightly
from mole.protection.front_file import read_front
from mole.protection.head import Head
from mole.protection.head_file import HomeHead, write_head

IDENTITY = pyrage.x25519.Identity.generate()
NETWORK = """
import torch

def small():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 10)
    )

def few():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(256, 4)
    )

def other():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.Flatten(), torch.nn.Linear(180, 10))

def normalising():
    return torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.Conv2d(3, 4, 3))

def broken():
    raise RuntimeError("no")

def nothing():
    return None
"""

MISSING, TYPE, PASSPHRASE, KEY, EMPTY, IMAGE, NAN, SHAPE, OUTPUT, REST = (
    "a missing file", "a wrong file type", "a wrong passphrase", "a non-matching key", "an empty folder",
    "a corrupted image", "NaN", "a shape that does not fit", "an output in a bad place", "the rest",
)  # fmt: skip

LAYER = ["--layer", "layer.safetensors"]
MINE = ["--key", "my.key", "--identity", "identity.txt"]
LOCKED = ["--key", "locked.key", "--passphrase-file", "wrong.txt"]
SIDES = ["--input-shape", "3x8x8"]
FOR_ME = ["--recipient", str(IDENTITY.to_public())]
CONV = ["--stride", 1, "--padding", 1]
SMALL = ["--network", "my_network:small"]
TEST = ["--split", "test"]
IN_FILE, NOWHERE, SEALED = "text.txt/out", "nowhere/out", "sealed/out"
NO_KEY, NO_IMAGES = {PASSPHRASE, KEY}, {EMPTY, IMAGE, NAN, SHAPE}
EVERY = {MISSING, TYPE, PASSPHRASE, KEY, EMPTY, IMAGE, NAN, SHAPE, OUTPUT}


def is_complete(mistakes: dict, not_applying: set[str]) -> bool:
    """Whether every mistake is either made or one that a command cannot meet."""
    return set(mistakes) - {REST} == EVERY - not_applying


def make_place(folder: Path) -> Path:
    """All that both roles have, and much that they should not have."""
    _texts_and_data(folder)
    mole.save(make_layer(), folder / "layer.safetensors")
    recipients = [str(IDENTITY.to_public())]
    make_key(0).save(folder / "my.key", recipients=recipients)
    make_key(1).save(folder / "other.key", recipients=recipients)
    save_lightly(make_key(0), folder / "locked.key", "open sesame")
    mole.MorphKey.generate((3, 9, 9)).save(folder / "wide.key", recipients=recipients)
    right("deliver", "data.npz", *LAYER, *MINE, "--out", "delivery", cwd=folder)
    right("deliver", "bare.npz", *LAYER, *MINE, "--out", "unlabelled", cwd=folder)
    other = ["--key", "other.key", "--identity", "identity.txt"]
    right("deliver", "data.npz", *LAYER, *other, "--out", "other", cwd=folder)
    right("morph", "data.npz", *LAYER, *MINE, "--out", "requests", cwd=folder)
    shutil.copytree(folder / "delivery", folder / "damaged")
    shard = folder / "damaged" / "data" / "test-00000-of-00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-100])
    right("train", "delivery", *SMALL, "--epochs", 1, cwd=folder)
    write_front(folder / "front.onnx")
    write_front(folder / "other-front.onnx", seed=1)
    head = Head(np.ones((2, FEATURES)), np.zeros(2))
    nameless = HomeHead(head, read_front(folder / "front.onnx").digest, 1.0)
    write_head(folder / "nameless.onnx", nameless)
    write_head(folder / "head.onnx", replace(nameless, class_names=("cat", "dog")))
    return folder


def _texts_and_data(folder: Path) -> None:
    (folder / "my_network.py").write_text(NETWORK)
    for name in ("text.txt", "text.pt", "text.safetensors"):
        (folder / name).write_text("just text")
    (folder / "empty.txt").write_text("")
    (folder / "wrong.txt").write_text("open barley\n")
    (folder / "identity.txt").write_text(f"{IDENTITY}\n")
    (folder / "wrong-identity.txt").write_text(f"{pyrage.x25519.Identity.generate()}\n")
    (folder / "empty").mkdir()
    (folder / "sealed").mkdir(mode=0o555)
    write_npz(folder / "data.npz")
    (folder / "cut.npz").write_bytes((folder / "data.npz").read_bytes()[:5000])
    np.savez(folder / "nan.npz", x_train=np.full((4, 8, 8, 3), np.nan, dtype=np.float32))
    np.savez(folder / "large.npz", x_train=np.zeros((4, 9, 9, 3), dtype=np.uint8))
    np.savez(folder / "few.npz", x_train=np.zeros((4, 8, 8, 3), dtype=np.uint8))
    np.savez(folder / "bare.npz", x_train=np.zeros((4, 8, 8, 3), dtype=np.uint8))
    (folder / "photos" / "cat").mkdir(parents=True)
    Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save(folder / "photos" / "cat" / "1.png")
    (folder / "photos" / "cat" / "2.png").write_bytes(b"no image")
    kernels = torch.ones(4, 3, 3, 3)
    torch.save({"a.weight": kernels, "a.bias": torch.zeros(4)}, folder / "weights.pt")
    torch.save({"a.weight": kernels * torch.nan}, folder / "nan.pt")
    save_file({"stem.weight": kernels, "b.weight": kernels.clone()}, folder / "twins.safetensors")
    two = mole.FirstLayer.conv(np.ones((4, 2, 3, 3)), None, input_shape=(2, 8, 8))
    mole.save(two, folder / "two-colours.safetensors")
    layer = make_layer()
    mole.save(layer, folder / "nan-layer.safetensors")
    content = (folder / "nan-layer.safetensors").read_bytes()
    spoilt = content.replace(layer.weight.tobytes(), np.full_like(layer.weight, np.nan).tobytes())
    assert spoilt != content
    (folder / "nan-layer.safetensors").write_bytes(spoilt)


def _writes_everywhere() -> bool:
    """Whether this user, root most of all, can write where nobody may."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        return os.access(folder, os.W_OK)


AS_ROOT = pytest.mark.skipif(_writes_everywhere(), reason="root may write everywhere")


def cases(table: dict) -> list:
    """Every call of the table, with its sentence; one with a bad output for each kind of bad output."""
    found = []
    for command, mistakes in table.items():
        for mistake, calls in mistakes.items():
            for number, (arguments, sentence) in enumerate(calls):
                name = f"{command}-{mistake}-{number}"
                if mistake != OUTPUT:
                    found.append(pytest.param(command, arguments, sentence, id=name))
                    continue
                for place in (IN_FILE, NOWHERE, SEALED):
                    if place == NOWHERE and command in ("deliver", "morph", "demo"):
                        continue  # these make the folders that they need
                    marks = [AS_ROOT] if place == SEALED else []
                    call_ = [*arguments, "--out", place]
                    found.append(
                        pytest.param(command, call_, " cannot be ", id=f"{name}-{place}", marks=marks)
                    )
    return found


def checks_of(mistakes: dict, not_applying: dict[str, set[str]]) -> tuple[Callable, Callable]:
    """The two tests of a table of mistakes: each is told as it should be, and none is forgotten."""

    @pytest.mark.parametrize(("command", "arguments", "sentence"), cases(mistakes))
    def told(mistaken_place: Path, command: str, arguments: list, sentence: str) -> None:
        check_mistake(mistaken_place, command, arguments, sentence)

    @pytest.mark.parametrize("command", mistakes)
    def complete(command: str) -> None:
        assert is_complete(mistakes[command], not_applying[command])

    return told, complete


def check_mistake(place: Path, command: str, arguments: list, sentence: str) -> None:
    """One sentence, the right exit code, and nothing left behind."""
    before = files_in(place)
    writes = (
        command not in ("info", "ledger", "verify", "analyse", "evaluate", "serve")
        and "--out" not in arguments
    )
    done = call(command, *arguments, *(["--out", "new-output"] if writes else []), cwd=place)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("mole: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert ".part" not in done.stderr
    assert done.stdout == ""
    assert files_in(place) == before
