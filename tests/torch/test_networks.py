"""The built-in networks: sizes, and that an augmented layer fits."""

import numpy as np
import pytest
import torch
from torch import nn

from glyphs import SHAPE
from mole.errors import ParameterError
from mole.torch import (
    export_first_layer,
)
from mole.torch.networks import NETWORKS, build_network

OF_IMAGES = [name for name in NETWORKS if name != "linear_head"]


@pytest.mark.parametrize(("name", "shape"), [(n, s) for n in OF_IMAGES for s in ((3, 32, 32), (1, 35, 40))])
def test_built_in_networks_take_an_augmented_layer(name, shape):
    model = build_network(name, shape, 7)
    assert model(torch.randn(2, *shape)).shape == (2, 7)
    assert export_first_layer(model, shape).kernel == (3, 3)


@pytest.mark.parametrize("shape", [(12,), (2, 3, 4)])
def test_a_linear_head_begins_with_a_turn_of_features(shape):
    model = build_network("linear_head", shape, 7)
    assert model(torch.randn(2, *shape)).shape == (2, 7)
    layer = export_first_layer(model, shape)
    assert (layer.kind, layer.bias) == ("linear", None)
    assert np.allclose(layer.weight @ layer.weight.T, np.eye(len(layer.weight)), atol=1e-5)


def test_the_sizes_of_built_in_networks():
    def products(model, shape):
        """Multiplications of the convolutions, for each of them."""
        found = []
        for part in model.modules():
            if isinstance(part, nn.Conv2d):
                part.register_forward_hook(
                    lambda layer, _, out: found.append(layer.weight[0].numel() * out[0].numel())
                )
        model(torch.randn(2, *shape))
        return found

    assert len(products(build_network("vgg16", (3, 32, 32), 10), (3, 32, 32))) == 13
    for name in ("small_vgg", "small_resnet"):
        assert 5e6 < sum(products(build_network(name, (1, 28, 28), 10), (1, 28, 28))) < 25e6


@pytest.mark.parametrize(
    ("name", "shape", "classes", "message"),
    [
        ("alexnet", SHAPE, 4, "no built-in network 'alexnet': use small_vgg, small_resnet, vgg16"),
        ("vgg16", (3, 28, 28), 4, "3x28x28 does not fit this network: it takes images of at least 32x32"),
        ("small_vgg", (64,), 4, "shape 64 does not fit this network"),
        ("small_resnet", SHAPE, 1, "1 classes has nothing to learn"),
        ("linear_head", (12,), 1, "1 classes has nothing to learn"),
        ("linear_head", (3, 64, 64), 2, "12,288 numbers do not fit this network: it takes up to 4,096"),
    ],
)
def test_networks_that_cannot_be_built(name, shape, classes, message):
    with pytest.raises(ParameterError, match=message):
        build_network(name, shape, classes)
