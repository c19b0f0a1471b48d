"""A first layer from a file of weights: what it says is used, and what it does not say is asked for."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import mole
from glyphs import FACTS, SHAPE, network
from mole.errors import FileError, ParameterError
from mole.torch import (
    export_first_layer,
    save_checkpoint,
)
from mole.torch.weight_files import first_layer_of_file


def test_a_first_layer_from_a_file_of_weights(tmp_path, rng):
    def tensor(*shape):
        return torch.from_numpy(rng.normal(size=shape).astype(np.float32))

    weights = {
        "stem.weight": tensor(6, 3, 3, 3), "stem.bias": tensor(6), "body.weight": tensor(8, 6, 3, 3),
        "head.weight": tensor(10, 8),
    }  # fmt: skip
    save_file(weights, tmp_path / "sorted.safetensors")  # body comes first in it
    torch.save({"model": weights, "epoch": 1}, tmp_path / "nested.pt")
    for file in ("sorted.safetensors", "nested.pt"):
        name, layer = first_layer_of_file(tmp_path / file, (3, 8, 8), stride=2, padding=1)
        assert name == "stem.weight"
        assert np.array_equal(layer.weight, weights["stem.weight"].numpy())
        assert np.array_equal(layer.bias, weights["stem.bias"].numpy())
        assert (layer.stride, layer.padding, layer.groups) == ((2, 2), ((1, 1), (1, 1)), 1)
    name, layer = first_layer_of_file(tmp_path / "nested.pt", (2, 4))
    assert (name, layer.kind) == ("head.weight", "linear")


def test_what_a_file_of_weights_does_not_tell_is_asked_for(tmp_path):
    twins = {"a.weight": torch.ones(4, 3, 3, 3), "b.weight": torch.ones(6, 1, 3, 3), "c": torch.ones(2)}
    torch.save(twins, tmp_path / "twins.pt")
    path = tmp_path / "twins.pt"
    for choices, message in (
        (
            {"stride": 1, "padding": 0},
            '2 weights that could be .*: give tensor="a.weight" or tensor="b.weight"$',
        ),
        ({"tensor": "c"}, "has no weight 'c': it has a.weight, b.weight$"),
        (
            {"tensor": "a.weight"},
            "does not say how the convolution 'a.weight' strides and pads: give stride=",
        ),
        ({"tensor": "a.weight", "stride": 1}, r"give stride=\.\.\. and padding=\.\.\.$"),
    ):
        with pytest.raises(ParameterError, match=message):
            first_layer_of_file(path, (3, 8, 8), **choices)
    with pytest.raises(ParameterError, match=r"no weight that takes samples of 5x8x8: it has a\.weight"):
        first_layer_of_file(path, (5, 8, 8))
    _, layer = first_layer_of_file(path, (3, 8, 8), tensor="b.weight", stride=1, padding=0)
    assert layer.groups == 3
    torch.save({"w": torch.ones(5, 192)}, path)
    with pytest.raises(ParameterError, match="'w' is a linear layer: leave out"):
        first_layer_of_file(path, (3, 8, 8), stride=1)


def test_files_from_which_no_plain_first_layer_can_be_taken(setting, trained, tmp_path):
    first = export_first_layer(network(), SHAPE)
    mole.save(first, tmp_path / "first.safetensors")
    mole.save(setting.layer, tmp_path / "augmented.safetensors")
    save_checkpoint(tmp_path / "morphed.safetensors", trained[0], FACTS)
    for name, message in (
        ("first", "is already a first layer: hand it over as it is"),
        ("augmented", "is an augmented layer"),
        ("morphed", "was trained on morphed data"),
    ):
        with pytest.raises(FileError, match=message):
            first_layer_of_file(tmp_path / f"{name}.safetensors", SHAPE, stride=1, padding=1)
    save_checkpoint(tmp_path / "plain.safetensors", network(), FACTS)
    _, layer = first_layer_of_file(tmp_path / "plain.safetensors", SHAPE, stride=1, padding=1)
    assert np.array_equal(layer.weight, first.weight)
