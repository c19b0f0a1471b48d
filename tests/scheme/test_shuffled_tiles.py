"""Tiles in a secret order: what is morphed, what comes back, what comes out, what is refused."""

import numpy as np
import pytest
import torch
from torch import nn

import mole
from mole.errors import ParameterError, ShapeError, UnsupportedLayerError
from mole.scheme.layouts import Layout, ShuffledTilesLayout
from mole.scheme.morphing import Morphing
from secrets_kept import DEVELOPER, RECIPIENT

SEED, OTHER_SEED = bytes(range(32)), bytes(32)
PATCHES = {
    "patches of a picture": (lambda: nn.Conv2d(3, 6, 4, stride=4), (3, 16, 24), 4, (4, 6)),
    "four patches to a tile": (lambda: nn.Conv2d(3, 6, 2, stride=2), (3, 16, 24), 4, (4, 6)),
    "patches with gaps": (lambda: nn.Conv2d(3, 6, 3, stride=4), (3, 16, 24), 4, (4, 6)),
    "pieces of sound": (lambda: nn.Conv1d(2, 5, 8, stride=8), (2, 64), 8, (8,)),
    "cubes": (lambda: nn.Conv3d(1, 4, 2, stride=2), (1, 4, 6, 8), 2, (2, 3, 4)),
}


def shuffled_key(shape, tile, seed=SEED) -> mole.MorphKey:
    return mole.MorphKey.generate(shape, tile=tile, shuffle_tiles=True, insecure_seed=seed)


def first_layer(layer: nn.Module, shape) -> mole.FirstLayer:
    bias = layer.bias.detach().numpy()
    return mole.FirstLayer.conv(layer.weight.detach().numpy(), bias, input_shape=shape, stride=layer.stride)


def tokens(features: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    """Features tile by tile, written out with loops: (b, tiles, channels, positions of a tile)."""
    sides = [side // count for side, count in zip(features.shape[2:], grid, strict=True)]
    found = []
    for tile in np.ndindex(*grid):
        at = [slice(place * side, (place + 1) * side) for place, side in zip(tile, sides, strict=True)]
        found.append(features[(slice(None), slice(None), *at)].reshape(*features.shape[:2], -1))
    return np.stack(found, axis=1)


@pytest.mark.parametrize("name", PATCHES)
def test_features_are_the_plain_ones_in_the_keys_order(rng, name):
    make, shape, tile, grid = PATCHES[name]
    torch.manual_seed(0)
    layer, key = make(), shuffled_key(shape, tile)
    images = rng.normal(size=(3, *shape)).astype(np.float32)
    plain = layer(torch.from_numpy(images)).detach().numpy()[:, key.channel_order(layer.out_channels)]
    augmented = mole.augment(first_layer(layer, shape), key)
    assert augmented.layout == "shuffled-tiles"
    found = tokens(augmented.features(mole.morph(images, key)), grid)
    order = key.stream("tile-order").order(key.kappa)
    assert np.allclose(found, tokens(plain, grid)[:, order], atol=1e-5)
    assert not np.allclose(found, tokens(plain, grid), atol=1e-2)
    other = mole.morph(images, shuffled_key(shape, tile, OTHER_SEED))
    wrong = tokens(augmented.features(other), grid)
    assert not np.allclose(wrong, tokens(plain, grid)[:, order], atol=1e-2)


def test_what_is_morphed_comes_back(rng):
    key = shuffled_key((3, 16, 24), 4)
    images = rng.normal(size=(3, 3, 16, 24))
    assert np.allclose(mole.unmorph(mole.morph(images, key), key), images)
    rows = images.reshape(3, -1)
    assert np.array_equal(mole.morph(rows, key), mole.morph(images, key).reshape(3, -1))
    order = key.morphing.tile_order
    assert sorted(order.tolist()) == list(range(24))
    assert order.tolist() != list(range(24))


def test_each_tile_is_morphed_as_without_shuffling_and_stands_elsewhere(rng):
    key = shuffled_key((3, 8, 8), 4)
    images = rng.normal(size=(2, 3, 8, 8))
    blocks = key.morphing.layout.to_blocks(images).reshape(2, 4, -1) @ key.morphing.core.matrix
    morphed = key.morphing.layout.to_blocks(mole.morph(images, key)).reshape(2, 4, -1)
    assert np.allclose(morphed, blocks[:, key.morphing.tile_order])


def test_every_key_has_an_order_of_its_own_and_keeps_it(tmp_path):
    key, other = shuffled_key((1, 32, 32), 4), shuffled_key((1, 32, 32), 4, OTHER_SEED)
    assert key.morphing.tile_order.tolist() != other.morphing.tile_order.tolist()
    key.save(tmp_path / "a.key", recipients=[RECIPIENT])
    loaded = mole.MorphKey.load(tmp_path / "a.key", identities=[str(DEVELOPER)])
    assert loaded.parameters.layout == "shuffled-tiles"
    assert np.array_equal(loaded.morphing.tile_order, key.morphing.tile_order)
    unshuffled = mole.MorphKey.generate((1, 32, 32), tile=4, insecure_seed=SEED)
    assert unshuffled.fingerprint != key.fingerprint
    assert unshuffled.morphing.tile_order is None


HALOS = {
    "a kernel larger than its stride": {"kernel": 5, "stride": 4},
    "padding": {"kernel": 4, "stride": 4, "padding": 4},
    "padding after": {"kernel": 4, "stride": 4, "padding": ((0, 4), (0, 0))},
    "dilation": {"kernel": 3, "stride": 4, "dilation": 2},
}


@pytest.mark.parametrize("name", HALOS)
def test_layers_that_look_beyond_a_tile_are_refused(name):
    options = dict(HALOS[name])
    kernel = options.pop("kernel")
    layer = mole.FirstLayer.conv(np.ones((2, 3, kernel, kernel)), None, input_shape=(3, 16, 16), **options)
    with pytest.raises(UnsupportedLayerError, match="look beyond a tile of side 4"):
        mole.augment(layer, shuffled_key((3, 16, 16), 4))
    made = mole.augment(layer, mole.MorphKey.generate((3, 16, 16), tile=4, insecure_seed=SEED))
    with pytest.raises(UnsupportedLayerError, match="look beyond a tile"):
        mole.AugmentedLayer(**{**{f: getattr(made, f) for f in made.__dataclass_fields__},
                               "layout": "shuffled-tiles"})  # fmt: skip


def test_shuffled_tiles_have_to_fill_the_samples_and_to_be_tiles():
    with pytest.raises(ParameterError, match="a 3x225x225 sample cannot be cut into tiles of side 16: use"):
        shuffled_key((3, 225, 225), 16)
    with pytest.raises(ParameterError, match="only tiles can be shuffled"):
        mole.MorphKey.generate((3, 16, 16), shuffle_tiles=True)
    with pytest.raises(ShapeError, match="does not fit"):
        mole.morph(np.zeros((1, 3, 15, 16)), shuffled_key((3, 16, 16), 4))


def test_an_order_is_for_shuffled_tiles_alone():
    core = shuffled_key((3, 8, 8), 4).morphing.core
    for name, order in (("tiles", np.arange(4)), ("shuffled-tiles", None)):
        with pytest.raises(ShapeError, match="an order of tiles"):
            Morphing.of(name, (3, 8, 8), 4, core, order)
    assert isinstance(Layout.of("shuffled-tiles", (3, 8, 8), 4), ShuffledTilesLayout)
