"""Tiles in networks: ImageNet's size, patch embeddings, volumes, other sizes, files."""

import numpy as np
import pytest
import torch
from torch import nn

import mole
from mole.errors import ShapeError
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.torch import attach, export_first_layer, load_checkpoint, save_checkpoint
from mole.torch.macs import count_macs
from mole.torch.networks import build_network
from mole.torch.tiles_module import TilesModule
from mole.torch.tiles_served import ServedTiles
from processors import needs_16_bits

LAYERS = {
    "ResNet's stem": (lambda: nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), (3, 224, 224), 8),
    "ViT-B/16's embedding": (lambda: nn.Conv2d(3, 768, 16, stride=16), (3, 224, 224), 16),
    "VGG's first layer": (lambda: nn.Conv2d(3, 64, 3, padding=1), (3, 32, 32), 4),
    "a volume": (lambda: nn.Conv3d(1, 8, 3, padding=1), (1, 24, 16, 32), 8),
    "sound": (lambda: nn.Conv1d(2, 8, 9, stride=4, padding=4), (2, 640), 64),
}


def attached(layer: nn.Module, shape: tuple[int, ...], tile: int) -> tuple[TilesModule, mole.MorphKey]:
    """The layer's augmented one, under a key of its own."""
    model, key = nn.Sequential(layer), mole.MorphKey.generate(shape, tile=tile)
    module = attach(model, mole.augment(export_first_layer(model, shape), key))
    assert isinstance(module, TilesModule)
    return module, key


def error(features: torch.Tensor, expected: torch.Tensor) -> float:
    return float((features - expected).norm() / expected.norm())


class Both:
    """A layer on images, and its augmented one on the same images morphed."""

    def __init__(self, rng: np.random.Generator, make, shape: tuple[int, ...], tile: int) -> None:
        torch.manual_seed(0)
        self.layer = make()
        self.module, key = attached(self.layer, shape, tile)
        self.images = rng.normal(size=(2, *shape)).astype(np.float32)
        self.morphed = torch.from_numpy(mole.morph(self.images, key))
        with torch.no_grad():
            plain = self.layer(torch.from_numpy(self.images))
        self.expected = plain[:, key.channel_order(self.layer.out_channels)]


@pytest.mark.parametrize("name", LAYERS)
def test_features_are_those_of_torchs_own_layer(rng, name):
    both = Both(rng, *LAYERS[name])
    assert error(both.module(both.morphed), both.expected) <= 1e-5
    make, shape, tile = LAYERS[name]
    _, other = attached(make(), shape, tile)
    wrong = torch.from_numpy(mole.morph(both.images, other))
    assert error(both.module(wrong), both.expected) > 0.5


ODD = {
    "cut off at the end": (lambda: nn.Conv2d(2, 3, 3), (2, 8, 8), 4),
    "far beyond its neighbours": (lambda: nn.Conv2d(1, 2, 4, padding=7, dilation=5), (1, 8, 12), 4),
    "zeros after the last tile": (lambda: nn.Conv2d(1, 2, 2, stride=4, padding=1), (1, 8, 8), 4),
    "a kernel that skips pixels": (lambda: nn.Conv2d(2, 4, 2, stride=4, groups=2), (2, 8, 8), 4),
    "unlike sides": (lambda: nn.Conv2d(1, 2, (1, 5), stride=(2, 1), padding=(0, 2)), (1, 8, 8), 4),
}


@pytest.mark.parametrize("name", ODD)
def test_features_in_parts_are_the_whole_of_them(rng, name):
    both = Both(rng, *ODD[name])
    features = both.module(both.morphed)
    assert error(features, both.expected) <= 1e-5
    assert features.is_contiguous()


SERVED = ODD | {
    "a patch by itself": (lambda: nn.Conv2d(3, 8, 4, stride=4), (3, 8, 12), 4),
    "patches among zeros": (lambda: nn.Conv2d(3, 8, 4, stride=4, padding=4), (3, 8, 12), 4),
    "features that no tile reaches": (lambda: nn.Conv2d(1, 2, 2, padding=9), (1, 8, 8), 4),
    "more zeros after than before": (lambda: nn.Conv2d(3, 8, 7, stride=2, padding=3), (3, 16, 24), 8),
    "a small volume": (lambda: nn.Conv3d(1, 2, 3, padding=1), (1, 8, 4, 12), 4),
    "a short sound": (lambda: nn.Conv1d(2, 3, 9, stride=4, padding=4), (2, 64), 16),
}


@pytest.mark.parametrize("name", SERVED)
def test_the_form_for_servers_gives_the_same(rng, name):
    both = Both(rng, *SERVED[name])
    served = ServedTiles(both.module)
    assert error(served(both.morphed), both.expected) <= 1e-5
    assert error(served(both.morphed.flatten(1)), both.expected) <= 1e-5
    assert error(served(both.morphed.flip(2)), both.expected) > 0.1
    shape = both.module.input_shape
    assert count_macs(served, shape) <= count_macs(both.module, shape)


@needs_16_bits
@pytest.mark.parametrize("name", ODD)
def test_autocast_gives_what_it_gives_a_convolution(rng, name):
    both = Both(rng, *ODD[name])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert both.module(both.morphed).dtype == both.layer(torch.from_numpy(both.images)).dtype


def test_zeros_of_the_kernel_are_not_multiplied():
    """ResNet's stem in tiles of 8: per axis, features 0 and 1 need two tiles, 2 one, and 3 two: 7 of 12."""
    module, _ = attached(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), (3, 32, 32), 8)
    tiles = 4 * 4
    assert count_macs(module, (3, 32, 32)) == module.weight.numel() * tiles * 7**2 // 12**2


def test_a_patch_embedding_keeps_its_shape():
    layer = nn.Conv2d(3, 768, 16, stride=16)
    module, _ = attached(layer, (3, 224, 224), 16)
    assert module.weight.shape[:2] == (768, 3 * 16 * 16)
    assert module.weight.numel() == layer.weight.numel()


def test_it_takes_images_of_other_sizes(rng):
    layer = nn.Conv2d(3, 8, 7, stride=2, padding=3)
    module, key = attached(layer, (3, 32, 32), 8)
    images = rng.normal(size=(2, 3, 48, 24)).astype(np.float32)
    tiles = key.morphing.layout.of_side((3, 48, 24), 8)
    blocks = tiles.to_blocks(images) @ key.morphing.core.matrix.astype(np.float32)
    morphed = torch.from_numpy(tiles.to_rows(blocks).reshape(images.shape))
    with torch.no_grad():
        expected = layer(torch.from_numpy(images))[:, key.channel_order(8)]
        assert error(module(morphed), expected) <= 1e-5
    with pytest.raises(ShapeError, match="multiples of 8"):
        module(torch.zeros(2, 3, 48, 28))


class Padded(nn.Module):
    """Pads its input itself."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.stem(nn.functional.pad(x, (0, 1, 1, 0)))


def test_zeros_that_the_network_adds_are_cut_off_again(rng):
    model, plain = Padded(), Padded()
    plain.load_state_dict(model.state_dict())
    key = mole.MorphKey.generate((3, 8, 8), tile=4, insecure_seed=bytes(32))
    attach(model, mole.augment(export_first_layer(model, (3, 8, 8)), key))
    images = rng.normal(size=(2, 3, 8, 8)).astype(np.float32)
    with torch.no_grad():
        expected = plain(torch.from_numpy(images))[:, key.channel_order(4)]
        assert error(model(torch.from_numpy(mole.morph(images, key))), expected) <= 1e-5


def test_a_checkpoint_brings_its_tiles_back(tmp_path, rng):
    model = build_network("small_vgg", (3, 16, 16), 3)
    key = mole.MorphKey.generate((3, 16, 16), tile=4, insecure_seed=bytes(32))
    attach(model, mole.augment(export_first_layer(model, (3, 16, 16)), key))
    morphed = torch.from_numpy(mole.morph(rng.normal(size=(2, 3, 16, 16)).astype(np.float32), key))
    facts = CheckpointFacts("small_vgg", input_shape=(3, 16, 16), classes=3)
    save_checkpoint(tmp_path / "model.safetensors", model.eval(), facts)
    loaded, facts = load_checkpoint(tmp_path / "model.safetensors")
    assert facts.key_fingerprint == key.fingerprint
    assert torch.allclose(loaded(morphed), model(morphed))
