"""Every command with every mistake that it can meet: one sentence, the right exit code, nothing left."""

import os
import shutil
import tempfile
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
from mole.cli.app import COMMANDS

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

# command -> mistake -> calls, each with what must be said
MISTAKES = {
    "export-layer": {
        MISSING: [
            (["missing.pt", *SIDES, *CONV], "missing.pt cannot be read: No such file"),
            (["my_network:small", *SIDES, "--weights", "missing.pt"], "missing.pt cannot be read"),
            (["nowhere:small", *SIDES], "module 'nowhere' cannot be imported"),
            (["my_network:missing", *SIDES], "has no function 'missing'"),
        ],
        TYPE: [
            (["text.pt", *SIDES, *CONV], "text.pt holds no weights, or it is damaged"),
            (["text.safetensors", *SIDES, *CONV], "text.safetensors holds no weights, or it is damaged"),
            (["my_network:small", *SIDES, "--weights", "text.pt"], "text.pt holds no weights"),
            (["my_network:small", *SIDES, "--weights", "text.txt"], "text.txt is not a file of weights"),
            (["layer.safetensors", *SIDES, *CONV], "layer.safetensors is already a first layer"),
            (["model.safetensors", *SIDES, *CONV], "was trained on morphed data"),
        ],
        NAN: [(["nan.pt", *SIDES, *CONV], "its weight has a NaN or an infinity")],
        SHAPE: [
            (["my_network:small", "--input-shape", "3x9x9"], "does not run on a batch"),
            (["weights.pt", "--input-shape", "5x8x8"], "no weight that takes samples of 5x8x8"),
            (
                ["my_network:small", *SIDES, "--mean", "0.5,0.5", "--std", "0.5"],
                "mean has 2 values and the input 3 channels: give one, or one per channel",
            ),
            (
                ["my_network:small", "--input-shape", "8x8x3"],
                "does not run on a batch of shape (3, 8, 8, 3): channels come first, so try 3x8x8",
            ),
            (
                ["weights.pt", "--input-shape", "8x8x3"],
                "no weight that takes samples of 8x8x3: channels come first, so try 3x8x8",
            ),
        ],
        REST: [
            (
                ["twins.safetensors", *SIDES, *CONV],
                "has 2 weights that could be the first layer's: give ",
            ),
            (["weights.pt", *SIDES], "does not say how the convolution 'a.weight' strides and pads"),
            (
                ["weights.pt", *SIDES, *CONV, "--tensor", "b"],
                "weights.pt has no weight 'b': it has a.weight",
            ),
            (["my_network:broken", *SIDES], "could not make a model"),
            (["my_network:nothing", *SIDES], "not a torch.nn.Module"),
            (["my_network:normalising", *SIDES], "goes through native_batch_norm"),
            (["lenet", *SIDES], "no built-in network 'lenet'"),
        ],
        OUTPUT: [(["my_network:small", *SIDES], None)],
    },
    "review": {
        MISSING: [
            (["missing", "--data", "data.npz"], "missing cannot be read: No such file"),
            (["layer.safetensors", "--data", "nowhere"], "nowhere is not there"),
        ],
        TYPE: [
            (["text.txt", "--data", "data.npz"], "text.txt is not a layer file"),
            (["my.key", "--data", "data.npz"], "my.key is a key, and a layer is needed here"),
            (["layer.safetensors", "--data", "text.txt"], "text.txt is not of a kind that can be read"),
        ],
        EMPTY: [(["layer.safetensors", "--data", "empty"], "empty is empty")],
        IMAGE: [(["layer.safetensors", "--data", "photos"], "photos/cat/2.png cannot be used")],
        NAN: [
            (
                ["layer.safetensors", "--data", "nan.npz"],
                "sample 0 of nan.npz:train cannot be used: pixels have a N",
            )
        ],
        SHAPE: [
            (
                ["layer.safetensors", "--data", "large.npz"],
                " and 2 more): the first is 3x9x9 and the layer takes 3x8x8: give --resize",
            ),
        ],
        OUTPUT: [(["layer.safetensors", "--data", "data.npz"], None)],
    },
    "keygen": {
        MISSING: [
            (["missing", *FOR_ME], "missing cannot be read: No such file"),
            (["layer.safetensors", "--passphrase-file", "missing"], "missing cannot be read"),
            (["layer.safetensors", *FOR_ME, "--data", "nowhere"], "nowhere is not there"),
        ],
        TYPE: [
            (["text.txt", *FOR_ME], "text.txt is not a layer file"),
            (["layer.safetensors", *FOR_ME, "--data", "text.txt"], "text.txt is not of a kind"),
        ],
        EMPTY: [(["layer.safetensors", *FOR_ME, "--data", "empty"], "empty is empty")],
        IMAGE: [(["layer.safetensors", *FOR_ME, "--data", "photos"], "photos/cat/2.png cannot be used")],
        NAN: [
            (
                ["layer.safetensors", *FOR_ME, "--data", "nan.npz"],
                "sample 0 of nan.npz:train cannot be used",
            )
        ],
        SHAPE: [
            (
                ["layer.safetensors", *FOR_ME, "--data", "large.npz"],
                "sample 0 of large.npz:train cannot be used: it is 3x9x9 and the layer takes 3x8x8",
            ),
            (["layer.safetensors", *FOR_ME, "--kappa", 5], "kappa = 5 does not divide"),
            (["layer.safetensors", *FOR_ME, "--data", "few.npz"], "the sample has no variance"),
        ],
        REST: [
            (
                ["layer.safetensors", "--out", "my.key", *FOR_ME],
                "my.key exists already, and a key is never",
            ),
            (["layer.safetensors"], "needs a passphrase: give --passphrase-file"),
            (["layer.safetensors", "--passphrase-file", "empty.txt"], "empty.txt has no passphrase"),
            (["layer.safetensors", "--recipient", "me"], "a recipient is not one of age's"),
        ],
        OUTPUT: [(["layer.safetensors", *FOR_ME], None)],
    },
    "deliver": {
        MISSING: [
            (["nowhere", *LAYER, *MINE], "nowhere is not there"),
            (["data.npz", "--layer", "missing", *MINE], "missing cannot be read"),
            (["data.npz", *LAYER, "--key", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt", *LAYER, *MINE], "text.txt is not of a kind that can be read"),
            (["cut.npz", *LAYER, *MINE], "cut.npz is not a readable .npz file"),
            (["data.npz", "--layer", "text.txt", *MINE], "text.txt is not a layer file"),
            (
                ["data.npz", "--layer", "delivery/augmented-layer.safetensors", *MINE],
                "a first layer is needed",
            ),
            (["data.npz", *LAYER, "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [
            (["data.npz", *LAYER, *LOCKED], "locked.key cannot be decrypted: the passphrase is wrong"),
            (["data.npz", *LAYER, "--key", "locked.key"], "locked.key needs a passphrase"),
            (["data.npz", *LAYER, "--key", "my.key"], "my.key is encrypted for age recipients"),
            (
                ["data.npz", *LAYER, "--key", "my.key", "--identity", "wrong-identity.txt"],
                "the identity is wrong",
            ),
        ],
        KEY: [
            (
                ["data.npz", *LAYER, "--key", "wide.key", "--identity", "identity.txt"],
                "make a key for this",
            ),
            (
                [
                    "data.npz",
                    *LAYER,
                    "--key",
                    "other.key",
                    "--identity",
                    "identity.txt",
                    "--out",
                    "delivery",
                ],
                "delivery holds another delivery already",
            ),
        ],
        EMPTY: [(["empty", *LAYER, *MINE], "empty is empty")],
        IMAGE: [(["photos", *LAYER, *MINE, "--no-class-names"], "photos/cat/2.png cannot be used")],
        NAN: [(["nan.npz", *LAYER, *MINE], "NaN")],
        SHAPE: [(["large.npz", *LAYER, *MINE], "3x9x9 and the layer takes 3x8x8: give --resize")],
        REST: [
            (["data.npz", *LAYER, *MINE, "--keep", "patient"], "no column 'patient'"),
            (["few.npz", *LAYER, *MINE, "--out", "delivery"], "delivery holds another delivery already"),
            (["data.npz", *LAYER, *MINE, "--out", "text.txt"], "text.txt is a file"),
            (
                ["data.npz", *LAYER, *MINE, "--engine", "ray", "--ray-address", "nonsense"],
                "'nonsense' is no address of a Ray cluster: write it as host:port",
            ),
        ],
        OUTPUT: [(["data.npz", *LAYER, *MINE], None)],
    },
    "morph": {
        MISSING: [
            (["nowhere", *LAYER, *MINE], "nowhere is not there"),
            (["data.npz", "--layer", "missing", *MINE], "missing cannot be read"),
            (["data.npz", *LAYER, "--key", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt", *LAYER, *MINE], "text.txt is not of a kind that can be read"),
            (["data.npz", "--layer", "text.txt", *MINE], "text.txt is not a layer file"),
            (["data.npz", *LAYER, "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [(["data.npz", *LAYER, *LOCKED], "locked.key cannot be decrypted: the passphrase is")],
        KEY: [(["data.npz", *LAYER, "--key", "wide.key", "--identity", "identity.txt"], "make a key for")],
        EMPTY: [(["empty", *LAYER, *MINE], "empty is empty")],
        IMAGE: [(["photos", *LAYER, *MINE], "photos/cat/2.png cannot be used")],
        NAN: [(["nan.npz", *LAYER, *MINE], "NaN")],
        SHAPE: [(["large.npz", *LAYER, *MINE], "3x9x9 and the layer takes 3x8x8: give --resize")],
        OUTPUT: [(["data.npz", *LAYER, *MINE], None)],
    },
    "recover": {
        MISSING: [
            (["missing", *MINE], "missing is not there"),
            (["delivery", "--key", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt", *MINE], "text.txt is a file"),
            (["delivery", "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [(["delivery", *LOCKED], "locked.key cannot be decrypted: the passphrase is wrong")],
        KEY: [(["delivery", "--key", "other.key", "--identity", "identity.txt"], "use that key")],
        EMPTY: [(["empty", *MINE], "empty has no manifest.json")],
        IMAGE: [(["damaged", *MINE], "damaged/data/test-00000-of-00001.parquet")],
        REST: [
            (["delivery", *MINE, "--out", "data.npz"], "data.npz exists already: choose another name, or")
        ],
        OUTPUT: [(["delivery", *MINE], None)],
    },
    "audit": {
        MISSING: [
            (["missing", *MINE], "missing is not there"),
            (["delivery", "--key", "missing"], "missing cannot be read"),
            (["delivery", *MINE, "--truth", "nowhere"], "nowhere is not there"),
            (["--layer", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt"], "text.txt is a file"),
            (["delivery", "--layer", "text.txt"], "text.txt is not a layer file"),
            (["delivery", "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [(["delivery", *LOCKED], "locked.key cannot be decrypted: the passphrase is wrong")],
        KEY: [(["delivery", "--key", "other.key", "--identity", "identity.txt"], "use that key")],
        EMPTY: [
            (["empty"], "empty has no manifest.json"),
            (["delivery", *MINE, "--truth", "empty"], "empty is empty"),
        ],
        IMAGE: [(["delivery", *MINE, "--public", "photos"], "photos/cat/2.png cannot be used")],
        NAN: [(["delivery", *MINE, "--public", "nan.npz"], "sample 0 of nan.npz:train cannot be used")],
        SHAPE: [
            (["delivery", *MINE, "--public", "large.npz"], "sample 0 of large.npz:train cannot be used"),
            (["--layer", "two-colours.safetensors"], "no bundled images of shape 2x8x8"),
        ],
        REST: [(["delivery", "--out", "empty"], "empty exists already")],
        OUTPUT: [(["delivery", *MINE], None)],
    },
    "train": {
        MISSING: [
            (["nowhere"], "nowhere is not there"),
            (["delivery", *SMALL, "--weights", "missing.pt"], "missing.pt cannot be read"),
        ],
        TYPE: [
            (["text.txt"], "text.txt is a file, and a folder is needed here"),
            (["requests", *SMALL], "requests came without an augmented layer"),
            (["unlabelled", *SMALL], "unlabelled has no labels to learn from"),
            (["delivery", *SMALL, "--weights", "text.pt"], "text.pt holds no weights"),
        ],
        EMPTY: [(["empty"], "empty has no manifest.json")],
        IMAGE: [(["damaged", *SMALL], "damaged/data/test-00000-of-00001.parquet")],
        SHAPE: [
            (["delivery", "--network", "small_resnet"], "does not fit"),
            (["delivery", *SMALL, "--weights", "weights.pt"], "weights.pt does not fit the model"),
            (
                ["delivery", "--network", "my_network:other", "--weights", "model.safetensors"],
                "the augmented layer does not fit layer '0'",
            ),
        ],
        KEY: [
            (
                ["other", *SMALL, "--weights", "model.safetensors"],
                "whose channels come in another order: give weights that were trained on plain data",
            ),
        ],
        REST: [
            (["delivery", "--network", "lenet"], "no built-in network 'lenet'"),
            (["delivery", *SMALL, "--device", "toaster"], "device 'toaster' cannot be used here"),
            (
                ["delivery", *SMALL, "--epochs", 1, "--out", "model.safetensors"],
                "model.safetensors exists already, with 1 epoch: ask for more, choose another name, or",
            ),
            (
                ["delivery", *SMALL, "--seed", 5, "--out", "model.safetensors"],
                "model.safetensors exists already, and was made with seed = 0: choose another name, or "
                "replace it: give --force",
            ),
            (
                ["delivery", "--network", "my_network:few"],
                "the network tells 4 classes apart and the data has 10: build it for 10",
            ),
        ],
        OUTPUT: [(["delivery", *SMALL], None)],
    },
    "predict": {
        MISSING: [
            (["missing.safetensors", "delivery", *TEST], "missing.safetensors cannot be read"),
            (["model.safetensors", "nowhere", *SMALL], "nowhere is not there"),
        ],
        TYPE: [
            (["text.txt", "delivery", *TEST], "text.txt is no checkpoint"),
            (["layer.safetensors", "delivery", *TEST], "layer.safetensors is no checkpoint"),
            (["model.safetensors", "text.txt", *SMALL], "text.txt is a file"),
        ],
        KEY: [(["model.safetensors", "other", *TEST, *SMALL], "was morphed with key")],
        EMPTY: [(["model.safetensors", "empty", *SMALL], "empty has no manifest.json")],
        IMAGE: [
            (["model.safetensors", "damaged", *TEST, *SMALL], "damaged/data/test-00000-of-00001.parquet")
        ],
        SHAPE: [
            (
                ["model.safetensors", "delivery", *TEST, "--network", "my_network:other"],
                "model.safetensors does not hold a usable network",
            ),
        ],
        REST: [
            (["model.safetensors", "delivery", *SMALL], "delivery has 2 splits: give "),
            (["model.safetensors", "delivery", *TEST], "'my_network:small', which is not built in: give "),
            (["model.safetensors", "delivery", "--split", "none", *SMALL], "no split 'none'"),
        ],
        OUTPUT: [(["model.safetensors", "delivery", *TEST, *SMALL], None)],
    },
    "evaluate": {
        MISSING: [
            (["delivery", "--checkpoint", "missing.safetensors"], "missing.safetensors cannot be read"),
            (["nowhere", *SMALL], "nowhere is not there"),
        ],
        TYPE: [
            (["delivery", "--checkpoint", "text.txt"], "text.txt is no checkpoint"),
            (["delivery", "--checkpoint", "layer.safetensors"], "layer.safetensors is no checkpoint"),
            (["text.txt", *SMALL], "text.txt is a file"),
            (["unlabelled", *SMALL], "unlabelled has no labels to compare with"),
        ],
        KEY: [(["other", *SMALL], "and model.safetensors was trained for key ")],
        EMPTY: [(["empty", *SMALL], "empty has no manifest.json")],
        IMAGE: [(["damaged", *SMALL], "damaged/data/test-00000-of-00001.parquet")],
        SHAPE: [
            (["delivery", "--network", "my_network:other"], "model.safetensors does not hold a usable"),
        ],
        REST: [
            (["delivery"], "'my_network:small', which is not built in: give --network"),
            (["delivery", "--split", "none", *SMALL], "delivery has no split 'none': it has"),
            (["delivery", *SMALL, "--device", "toaster"], "device 'toaster' cannot be used here"),
        ],
    },
    "info": {
        MISSING: [(["missing"], "missing cannot be read: No such file")],
        TYPE: [
            (["text.txt"], "text.txt is not a layer file, or it is cut off"),
            (["twins.safetensors"], "no Morphed Learning layer"),
        ],
        PASSPHRASE: [
            (["locked.key", "--passphrase-file", "wrong.txt"], "the passphrase is wrong"),
            (["locked.key"], "locked.key needs a passphrase: give --passphrase-file"),
            (["my.key"], "my.key is encrypted for age recipients: give --identity"),
        ],
        EMPTY: [(["empty"], "empty has no manifest.json")],
        NAN: [(["nan-layer.safetensors"], "nan-layer.safetensors is damaged")],
    },
    "ledger": {
        MISSING: [(["missing"], "missing is no key: give a key's file, or the 32 digits")],
        TYPE: [(["text.txt"], "text.txt is not a key")],
        PASSPHRASE: [(["locked.key", "--passphrase-file", "wrong.txt"], "the passphrase is wrong")],
        EMPTY: [(["empty"], "empty cannot be read: Is a directory")],
    },
    "verify": {
        MISSING: [(["missing"], "missing is not there")],
        TYPE: [(["text.txt"], "text.txt is a file")],
        EMPTY: [(["empty"], "empty has no manifest.json")],
    },
    "analyze": {
        MISSING: [(["--layer", "missing"], "missing cannot be read")],
        TYPE: [(["--layer", "text.txt"], "text.txt is not a layer file")],
        SHAPE: [(["--shape", "3x9x9", "--model", "my_network:small"], "does not run on a batch")],
    },
    "demo": {
        REST: [(["--out", "empty"], "empty exists already")],
        OUTPUT: [([], None)],
    },
}

# Why a mistake is not in the table above.
NO_KEY, NO_IMAGES = {PASSPHRASE, KEY}, {EMPTY, IMAGE, NAN, SHAPE}
DOES_NOT_APPLY = {
    "export-layer": NO_KEY | {EMPTY, IMAGE},  # reads a network
    "review": NO_KEY,
    "keygen": NO_KEY,  # makes one
    "deliver": set(),
    "morph": set(),
    "recover": {NAN, SHAPE},  # a delivery has neither: test_damage changes every byte of one
    "audit": set(),
    "train": {PASSPHRASE, NAN},  # a delivery has no NaN
    "evaluate": {PASSPHRASE, NAN, OUTPUT},  # writes nothing
    "predict": {PASSPHRASE, NAN},
    "info": {KEY, IMAGE, SHAPE, OUTPUT},  # reads one file at a time, and writes none
    "ledger": {KEY, IMAGE, NAN, SHAPE, OUTPUT},  # reads a key and its ledger, and writes nothing
    "verify": NO_KEY | {IMAGE, NAN, SHAPE, OUTPUT},  # says what it finds in its result: test_cli_delivery
    "analyze": NO_KEY | {EMPTY, IMAGE, NAN, OUTPUT},
    "demo": NO_KEY | NO_IMAGES | {MISSING, TYPE},  # has its own data
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """All that both roles have, and much that they should not have."""
    folder = tmp_path_factory.mktemp("place")
    _texts_and_data(folder)
    mole.save(make_layer(), folder / "layer.safetensors")
    recipients = [str(IDENTITY.to_public())]
    make_key(0).save(folder / "my.key", recipients=recipients)
    make_key(1).save(folder / "other.key", recipients=recipients)
    make_key(0).save(folder / "locked.key", "open sesame")
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


def cases() -> list:
    """Every call of the table, with its sentence; one with a bad output for each kind of bad output."""
    found = []
    for command, mistakes in MISTAKES.items():
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


@pytest.mark.parametrize(("command", "arguments", "sentence"), cases())
def test_a_mistake_is_one_sentence_and_nothing_is_left_behind(place, command, arguments, sentence):
    before = files_in(place)
    writes = command not in ("info", "ledger", "verify", "analyze", "evaluate") and "--out" not in arguments
    done = call(command, *arguments, *(["--out", "new-output"] if writes else []), cwd=place)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("mole: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert ".part" not in done.stderr
    assert done.stdout == ""
    assert files_in(place) == before


def test_the_table_is_complete():
    commands = set(COMMANDS)
    assert set(MISTAKES) == set(DOES_NOT_APPLY) == commands
    every = {MISSING, TYPE, PASSPHRASE, KEY, EMPTY, IMAGE, NAN, SHAPE, OUTPUT}
    for command, mistakes in MISTAKES.items():
        assert set(mistakes) - {REST} == every - DOES_NOT_APPLY[command], command


WRONG_CALLS = [
    ["nonsense"],
    ["info"],
    ["info", "--nonsense", "x"],
    ["deliver"],
    ["keygen"],
    ["verify"],
    ["recover", "delivery"],
    ["deliver", "data.npz", *LAYER, *MINE, "--dtype", "int3"],
    ["deliver", "data.npz", *LAYER, *MINE, "--layer-dtype", "int8"],
    ["deliver", "data.npz", *LAYER, *MINE, "--mode", "CMYK"],
    ["deliver", "data.npz", *LAYER, *MINE, "--resize", "pad"],
    ["deliver", "data.npz", *LAYER, *MINE, "--engine", "spark"],
    ["morph", "data.npz", *LAYER, *MINE, "--dtype", "int3"],
    ["keygen", "layer.safetensors", *FOR_ME, "--core", "uniform"],
    ["review", "layer.safetensors", "--data", "data.npz", "--samples", "0"],
    ["train", "delivery", "--seed", "99999999999999999999999"],
    ["train", "delivery", "--seed", "-1"],
    ["train", "delivery", "--batch-size", "9" * 30],
    ["train", "delivery", "--epochs", "0"],
    ["train", "delivery", "--learning-rate", "0"],
    ["export-layer", "small_vgg", *SIDES, "--classes", "9" * 12],
    ["demo", "--seeds", "0"],
]
WRONG_TOGETHER = [
    (
        ["deliver", "data.npz", *LAYER, *MINE, "--ray-address", "host:6379"],
        "--ray-address is for --engine ray",
    ),
    (["keygen", "layer.safetensors", *FOR_ME, "--core", "whitened"], "add --data"),
    (
        ["keygen", "layer.safetensors", *FOR_ME, "--core", "gaussian", "--data", "data.npz"],
        "leave out --data",
    ),
    (["keygen", "layer.safetensors", *FOR_ME, "--resize", "crop"], "--resize say how --data is read"),
    (["export-layer", "my_network:small", "--input-shape", "3,8,8"], "'3,8,8' is no shape"),
    (["export-layer", "my_network:small", "--input-shape", "0x8x8"], "'0x8x8' is no shape"),
    (["export-layer", "my_network:small", *SIDES, "--mean", "0.5,0.5,0.5"], "both --mean and --std"),
    (["export-layer", "my_network:small", *SIDES, "--mean", "a", "--std", "b"], "numbers with commas"),
    (["export-layer", "my_network:small", *SIDES, "--stride", 2], "--stride belongs to a file of weights"),
    (
        ["export-layer", "weights.pt", *SIDES, *CONV, "--weights", "weights.pt"],
        "--weights belong to a model",
    ),
    (["analyze"], "give one of --layer, --shape and --preset"),
]


@pytest.mark.parametrize("arguments", WRONG_CALLS, ids=map(str, range(len(WRONG_CALLS))))
def test_a_wrong_call_has_its_own_exit_code(place, arguments):
    before = files_in(place)
    done = call(*arguments, cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: mole" in done.stderr
    assert files_in(place) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"), WRONG_TOGETHER, ids=[sentence for _, sentence in WRONG_TOGETHER]
)
def test_options_that_cannot_stand_together(place, arguments, sentence):
    before = files_in(place)
    done = call(*arguments, cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mole: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert files_in(place) == before
