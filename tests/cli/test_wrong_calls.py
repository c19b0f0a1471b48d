"""Calls that cannot be understood: one sentence, exit code 2, and nothing left behind."""

import re

import pytest

from command import call, files_in
from mistakes import CONV, FOR_ME, LAYER, MINE, SIDES

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
    ["keygen", *LAYER, *FOR_ME, "--core", "uniform"],
    ["review", "data.npz", *LAYER, "--samples", "0"],
    ["train", "delivery", "--seed", "99999999999999999999999"],
    ["train", "delivery", "--seed", "-1"],
    ["train", "delivery", "--batch-size", "9" * 30],
    ["train", "delivery", "--epochs", "0"],
    ["train", "delivery", "--learning-rate", "0"],
    ["export-layer", "--network", "small_vgg", *SIDES, "--classes", "9" * 12],
    ["demo", "--seeds", "0"],
]
WRONG_TOGETHER = [
    (
        ["deliver", "data.npz", *LAYER, *MINE, "--ray-address", "host:6379"],
        "--ray-address is for --engine ray",
    ),
    (["keygen", *LAYER, *FOR_ME, "--core", "whitened"], "add --data"),
    (
        ["keygen", *LAYER, *FOR_ME, "--core", "gaussian", "--data", "data.npz"],
        "leave out --data",
    ),
    (["keygen", *LAYER, *FOR_ME, "--resize", "crop"], "--resize say how --data and --public are read"),
    (["export-layer", "--network", "my_network:small", "--input-shape", "3,8,8"], "'3,8,8' is not a shape"),
    (["export-layer", "--network", "my_network:small", "--input-shape", "0x8x8"], "'0x8x8' is not a shape"),
    (
        ["export-layer", "--network", "my_network:small", *SIDES, "--mean", "0.5,0.5,0.5"],
        "both --mean and --std",
    ),
    (
        ["export-layer", "--network", "my_network:small", *SIDES, "--mean", "a", "--std", "b"],
        "numbers with commas",
    ),
    (
        ["export-layer", "--network", "my_network:small", *SIDES, "--stride", 2],
        "--stride is for a file of weights",
    ),
    (
        ["export-layer", "--network", "weights.pt", *SIDES, *CONV, "--weights", "weights.pt"],
        "--weights is for a network in code",
    ),
    (
        [
            "front",
            "make",
            "--network",
            "my_network:small",
            *SIDES,
            "--public",
            "data.npz",
            "--by-class",
            "--skip-bad",
        ],
        "--by-class needs all images",
    ),
    (["analyse"], "give one of --layer, --shape and --preset"),
]


@pytest.mark.parametrize("arguments", WRONG_CALLS, ids=map(str, range(len(WRONG_CALLS))))
def test_a_wrong_call_has_its_own_exit_code(mistaken_place, arguments):
    before = files_in(mistaken_place)
    done = call(*arguments, cwd=mistaken_place)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(r"mole: [a-z].*: see mole( [a-z-]+)? --help", line)
    assert files_in(mistaken_place) == before


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            ["analyze", "--preset", "cifar-vgg16"],
            "no such command 'analyze': the command is called analyse now",
        ),
        (
            ["analyse", *LAYER, "--model", "vgg16"],
            "no such option: --model: the option is called --network now",
        ),
        (
            ["audit", "delivery", "--truth", "data.npz"],
            "no such option: --truth: the option is called --data",
        ),
        (
            ["review", "layer.safetensors", "--data", "data.npz"],
            "the data comes first now, and the layer with",
        ),
        (["predict", "model.safetensors", "requests"], "the checkpoint is an option, --checkpoint"),
        (
            ["deliver", "photos", "--labels", *LAYER, *MINE],
            "--labels takes a table of labels, and '--layer' is an option: name the file, or give --folder",
        ),
        (["deliver", "photos", *LAYER, *MINE, "--labels", "-q"], "and '-q' is an option"),
        (["deliver", "photos", *LAYER, *MINE, "--labels"], "or give --folder-labels instead"),
        (["keygen", "layer.safetensors", *FOR_ME], "missing option '--layer'"),
        (["export-layer", "small_vgg", *SIDES], "missing option '--network'"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_name_of_an_earlier_version_is_told_its_new_one(mistaken_place, arguments, hint):
    before = files_in(mistaken_place)
    done = call(*arguments, cwd=mistaken_place)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert hint in done.stderr
    assert files_in(mistaken_place) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"), WRONG_TOGETHER, ids=[sentence for _, sentence in WRONG_TOGETHER]
)
def test_options_that_cannot_stand_together(mistaken_place, arguments, sentence):
    before = files_in(mistaken_place)
    done = call(*arguments, cwd=mistaken_place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mole: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert files_in(mistaken_place) == before
