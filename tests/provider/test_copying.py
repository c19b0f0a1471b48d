"""First layers that copy pixels are told from those that filter, alone or by two kernels together."""

import tracemalloc

import numpy as np
import pyrage
import pytest
import torch
from torch import nn

import mole
from command import call
from deliveries import SMALL, make_key, make_layer, write_npz
from mole.errors import ParameterError
from mole.provider import copying
from mole.provider.copying import Copies, copies_of
from mole.provider.deliver import deliver
from mole.provider.review import review_layer
from mole.scheme.convolution import features_of


def conv(weight, **options) -> mole.FirstLayer:
    weight = np.asarray(weight, dtype=np.float32)
    shape = (weight.shape[1] * options.get("groups", 1), *(2 * side for side in weight.shape[2:]))
    return mole.FirstLayer.conv(weight, None, input_shape=shape, **options)


def linear(weight, shape) -> mole.FirstLayer:
    return mole.FirstLayer.linear(np.asarray(weight, dtype=np.float32), None, input_shape=shape)


def gabor(side, angle, wavelength, phase) -> np.ndarray:
    y, x = np.mgrid[:side, :side] - side // 2
    wave = np.cos(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / wavelength + phase)
    return np.exp(-(x**2 + y**2) / 4.5) * wave


GABORS = [
    [gabor(9, angle, wavelength, phase)]
    for angle in np.linspace(0, np.pi, 8, endpoint=False)
    for wavelength in (3, 5, 8)
    for phase in (0, np.pi / 2)
]
TEXTBOOK = [
    [[[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]]],
    [[[0, -1, 0], [-1, 5, -1], [0, -1, 0]]],
    [[[1, 2, 1], [0, 0, 0], [-1, -2, -1]]],
    [[[1, 0, -1], [2, 0, -2], [1, 0, -1]]],
]


@pytest.mark.parametrize("seed", range(3))
def test_fresh_networks_do_not_copy(seed):
    """As VGG, ResNet, AlexNet, LeNet, ViT and wav2vec 2.0 begin, one for volumes, and a perceptron."""
    torch.manual_seed(seed)
    for layer, options in (
        (nn.Conv2d(3, 64, 3), {}),
        (nn.Conv2d(1, 64, 3), {}),
        (nn.Conv2d(3, 64, 7), {"stride": 2}),
        (nn.Conv2d(3, 64, 11), {"stride": 4}),
        (nn.Conv2d(1, 6, 5), {}),
        (nn.Conv2d(3, 96, 3, groups=3), {"groups": 3}),
        (nn.Conv2d(3, 192, 16), {"stride": 16}),
        (nn.Conv1d(1, 256, 10), {"stride": 5}),
        (nn.Conv3d(1, 32, 3), {}),
    ):
        assert copies_of(conv(layer.weight.detach(), **options)) == Copies((), ()), layer
    assert copies_of(linear(nn.Linear(784, 200).weight.detach(), (1, 28, 28))) == Copies((), ())


@pytest.mark.parametrize("kernels", [GABORS, TEXTBOOK])
def test_filters_do_not_copy(kernels):
    assert copies_of(conv(kernels)) == Copies((), ())


def test_a_trained_layer_does_not_copy():
    """As close as training has been seen to come: 92 % at one place, in a network trained on ImageNet."""
    weight = np.full((1, 3, 3, 3), np.sqrt(0.08 / 24))
    weight[0, :, 1, 1] = np.sqrt(0.92 / 3)
    assert copies_of(conv(weight)) == Copies((), ())


def delta(shape, *place, size=1.0) -> np.ndarray:
    kernel = np.zeros(shape)
    kernel[place] = size
    return kernel


@pytest.mark.parametrize("shape", [(3, 3, 3), (1, 3, 3), (1, 9), (1, 3, 3, 3), (3, 16, 16), (2, 5)])
def test_a_kernel_at_one_place_copies(rng, shape):
    weight = rng.normal(size=(6, *shape))
    middle = tuple(side // 2 for side in shape[1:])
    noise = rng.uniform(-1, 1, shape)
    weight[1] = delta(shape, 0, *middle, size=-1e-9)  # however faint
    weight[3] = delta(shape, slice(None), *middle)  # a mix of colours is the grey image
    weight[4] = delta(shape, 0, *middle) + 0.06 / 0.94 * noise / np.abs(noise).sum()  # 94 % of the weight
    assert copies_of(conv(weight)) == Copies((1, 3, 4), ())


def test_kernels_of_one_pixel_copy(rng):
    assert copies_of(conv(rng.normal(size=(4, 3, 1, 1)))).channels == (0, 1, 2, 3)
    assert copies_of(conv(rng.normal(size=(4, 1, 1)), stride=2)).channels == (0, 1, 2, 3)
    assert copies_of(conv(np.zeros((2, 3, 1, 1)))) == Copies((), ())


@pytest.mark.parametrize("shape", [(3, 3, 3), (1, 3, 3), (1, 9), (1, 5), (1, 3, 3, 3)])
@pytest.mark.parametrize("size", [2.0, 1e-1, 1e-3])
def test_two_kernels_copy_together(rng, shape, size):
    """r, and a multiple of r with something at one place."""
    weight = rng.normal(size=(5, *shape))
    weight[:, 0] += np.where(np.arange(weight[0, 0].size) % 2, 3, -3).reshape(weight[0, 0].shape)
    middle = tuple(side // 2 for side in shape[1:])
    weight[4] = -1.7 * weight[2] + delta(shape, 0, *middle, size=size)
    assert (2, 4) in copies_of(conv(weight)).pairs
    difference = features_of(conv(weight[4:] + 1.7 * weight[2:3]), np.ones((1, *conv(weight).input_shape)))
    assert np.allclose(difference, size, rtol=1e-2)  # what the developer would compute: the pixel


def test_kernels_that_are_all_but_equal_are_no_copy(rng):
    weight = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    weight[1] = 3 * weight[0]
    weight[2] = np.nextafter(weight[3], 0)
    assert copies_of(conv(weight)) == Copies((), ())


@pytest.mark.parametrize("few", [True, False])
def test_linear_layers_and_patch_embeddings_copy(rng, monkeypatch, few):
    """Few pairs are looked at one by one; of many, those that are alike on half of their places."""
    if not few:
        monkeypatch.setattr(copying, "PAIRS_AND_PLACES", 0)
    weight = rng.normal(size=(20, 3, 8, 8))
    weight[7] = delta((3, 8, 8), 1, 2, 3)
    weight[9] = weight[4] + delta((3, 8, 8), 0, 5, 5, size=0.5)
    for layer in (conv(weight, stride=8), linear(weight.reshape(20, -1), (3, 8, 8))):
        assert copies_of(layer) == Copies((7,), ((4, 9),))
    assert copies_of(linear(weight.reshape(20, -1), (192,))) == Copies((7,), ((4, 9),))
    honest = np.delete(weight, [7, 9], axis=0)
    assert copies_of(conv(honest, stride=8)) == Copies((), ())


def test_many_channels_take_little_memory(rng):
    weight = rng.normal(size=(6000, 16))
    weight[5990] = weight[17] + delta(16, 3, size=0.01)
    layer = linear(weight, (1, 4, 4))
    tracemalloc.start()
    found = copies_of(layer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (17, 5990) in found.pairs
    assert peak < 150 << 20  # a number for each pair would be 288 MB, in 64 bits
    assert not found.not_looked_at


@pytest.mark.parametrize("limit", ["MOST_CHANNELS", "MOST_PAIRS"])
def test_what_is_too_large_to_be_looked_at_does_not_pass(rng, monkeypatch, limit):
    weight = np.repeat(rng.normal(size=(1, 12)), 20, axis=0) + 0.01 * rng.normal(size=(20, 12))
    layer = linear(weight, (12,))
    monkeypatch.setattr(copying, "PAIRS_AND_PLACES", 0)
    assert copies_of(layer) == Copies((), ())
    monkeypatch.setattr(copying, limit, 19)
    assert "pairs of its" in copies_of(layer).not_looked_at
    assert copies_of(layer).words == ""
    with pytest.raises(ParameterError, match=r"^x may show .* too large to look at .*_layer=True$"):
        copying.refuse_copying(layer, "x")
    found = review_layer(layer, rng.normal(size=(2, 12)).astype(np.float32)).findings
    assert "too large to look at" in found[0]


def copier() -> mole.FirstLayer:
    weight = make_layer().weight.copy()
    weight[2] = delta((3, 3, 3), 0, 1, 1)
    return mole.FirstLayer.conv(weight, None, input_shape=(3, 8, 8), padding=1)


def test_a_delivery_is_refused_and_nothing_written(tmp_path):
    data, layer, out = write_npz(tmp_path / "data.npz"), copier(), tmp_path / "out"
    sentence = r"would show your images as they are \(channel 2 copies single pixels\): ask .*_layer=True$"
    with pytest.raises(ParameterError, match=f"the first layer {sentence}"):
        deliver(data, layer, make_key(), out, **SMALL)
    mole.save(layer, tmp_path / "layer.safetensors")
    with pytest.raises(ParameterError, match=f"layer.safetensors {sentence}"):
        deliver(data, tmp_path / "layer.safetensors", make_key(), out, **SMALL)
    assert not out.exists()
    deliver(data, layer, make_key(), out, allow_copying_layer=True, **SMALL)
    deliver(data, layer, make_key(), tmp_path / "requests", layer_dtype=None)  # no layer leaves with these


def test_the_command_refuses_before_it_opens_the_key(tmp_path):
    write_npz(tmp_path / "data.npz")
    mole.save(copier(), tmp_path / "layer.safetensors")
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "identity.txt").write_text(str(identity))
    make_key().save(tmp_path / "my.key", recipients=[str(identity.to_public())])
    parts = ("deliver", "data.npz", "--layer", "layer.safetensors", "--key", "my.key", "--out", "out")
    done = call(*parts, cwd=tmp_path)
    assert done == (
        1,
        "",
        "mole: layer.safetensors would show your images as they are (channel 2 copies single pixels): ask "
        "its sender for another, or allow it: give --allow-copying-layer\n",
    )
    assert not (tmp_path / "out").exists()
    allowed = ("--allow-copying-layer", "--identity", "identity.txt")
    assert call(*parts, *allowed, cwd=tmp_path).returncode == 0
