"""The augmented layer of tiles: a convolution over tiles, against PyTorch's layer on plain data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given

import mole
from mole.errors import ParameterError, ShapeError, UnsupportedLayerError
from mole.scheme.convolution import features_of
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layer_matrix import layer_matrix
from mole.scheme.layer_sizes import augmented_bytes, refuse_too_large
from mole.scheme.layouts import Layout, TilesLayout
from strategies import tile_cases

SEED, OTHER_SEED = bytes(range(32)), bytes(32)


def key_for(layer: mole.FirstLayer, tile: int, seed: bytes = SEED) -> mole.MorphKey:
    return mole.MorphKey.generate(layer.input_shape, tile=tile, insecure_seed=seed)


@given(tile_cases())
def test_tiles_give_torchs_features(drawn):
    case, tile = drawn
    key = key_for(case.layer, tile)
    features = mole.augment(case.layer, key, dtype="float64").features(mole.morph(case.batch, key))
    expected = case.torch_features()[:, key.channel_order(case.layer.channels)]
    assert features.shape == expected.shape
    assert np.allclose(features, expected, atol=1e-9)


@given(tile_cases())
def test_with_another_key_the_features_differ(drawn):
    case, tile = drawn
    key, other = (key_for(case.layer, tile, seed) for seed in (SEED, OTHER_SEED))
    assume(key.morphing.core.size > 1 and layer_matrix(case.layer).any())
    features = mole.augment(case.layer, other, dtype="float64").features(mole.morph(case.batch, key))
    expected = case.torch_features()[:, other.channel_order(case.layer.channels)]
    assert not np.allclose(features, expected, atol=1e-7)


@given(tile_cases())
def test_rows_and_columns_are_those_of_the_dense_matrix(drawn):
    """M^-1 C with C written out, element by element."""
    case, tile = drawn
    assume(layer_matrix(case.layer).size < 1 << 20)
    key = key_for(case.layer, tile)
    augmented = mole.augment(case.layer, key, dtype="float64")
    order, layout = key.channel_order(case.layer.channels), key.morphing.layout
    inverse = layout.inverse_rows(key.morphing.core.inverse, 0, layout.elements)
    by_channel = (inverse @ layer_matrix(case.layer)).reshape(layout.elements, len(order), -1)
    dense = by_channel[:, order].reshape(layout.elements, -1)
    assert np.allclose(augmented.matrix, dense, atol=1e-9)
    some = np.arange(0, layout.elements, 3)
    assert np.allclose(augmented.rows(some), dense[some], atol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"padding": 1}, {"stride": 2, "padding": 3}, {"dilation": 2, "padding": (0, 2)}]
)
def test_a_layer_for_a_crop_gives_the_crops_features(rng, options):
    """A crop along the borders of tiles is a sample like any other, with zeros beyond its own edge."""
    weight = rng.normal(size=(4, 3, 3, 3))
    layer = mole.FirstLayer.conv(weight, rng.normal(size=4), input_shape=(3, 24, 32), **options)
    key, plain = key_for(layer, 4), rng.normal(size=(2, 3, 24, 32))
    augmented = mole.augment(layer, key, dtype="float64")
    cropped = augmented.for_shape((3, 12, 8))
    assert cropped.kappa == 6
    here = (slice(None), slice(None), slice(4, 16), slice(8, 16))
    expected = features_of(replace(layer, input_shape=(3, 12, 8)), plain[here])
    found = cropped.features(mole.morph(plain, key)[here])
    assert np.allclose(found, expected[:, key.channel_order(4)], atol=1e-9)
    assert cropped.for_shape(layer.input_shape).output_shape == layer.output_shape


def test_only_tiles_are_for_samples_of_any_size(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(4, 3, 3, 3)), None, input_shape=(3, 8, 8))
    tiles = mole.augment(layer, key_for(layer, 4))
    rows = mole.augment(layer, mole.MorphKey.generate(layer.input_shape, insecure_seed=SEED))
    for made, shape, reason in [
        (rows, (3, 4, 4), "blocks of rows is for samples of one shape"),
        (tiles, (3, 6, 6), "cannot be cut into tiles of side 4"),
        (tiles, (1, 8, 8), "other channels"),
        (tiles, (3, 8), "other channels or axes"),
    ]:
        with pytest.raises(ParameterError, match=reason):
            made.for_shape(shape)


def stem(channels: int = 64, side: int = 224) -> mole.FirstLayer:
    """ResNet's first layer."""
    weight = np.random.default_rng(0).normal(size=(channels, 3, 7, 7), scale=147**-0.5).astype(np.float32)
    return mole.FirstLayer.conv(weight, None, input_shape=(3, side, side), stride=2, padding=3)


@pytest.mark.parametrize("tile", [4, 8, 16])
def test_a_resnets_layer_at_imagenet_size_is_small(tile):
    layer = stem()
    layout = TilesLayout.of_side(layer.input_shape, tile)
    assert augmented_bytes(layer, Layout.of("rows", layer.input_shape, 1)) > 480e9
    made = mole.augment(layer, key_for(layer, tile))
    assert made.nbytes == augmented_bytes(layer, layout)
    assert made.nbytes < {4: 5e5, 8: 1e7, 16: 2e8}[tile]


def test_what_tiles_are_not_for_is_refused_with_the_reason():
    linear = mole.FirstLayer.linear(np.ones((2, 64)), None, input_shape=(1, 8, 8))
    with pytest.raises(UnsupportedLayerError, match="a Linear layer looks at the whole sample at once"):
        mole.augment(linear, key_for(linear, 4))
    strided = mole.FirstLayer.conv(np.ones((2, 1, 3, 3)), None, input_shape=(1, 8, 8), stride=3)
    with pytest.raises(UnsupportedLayerError, match="stride 3x3 does not divide tiles of side 4"):
        mole.augment(strided, key_for(strided, 4))
    bare = mole.FirstLayer.conv(np.ones((2, 1, 3, 3)), None, input_shape=(8, 8))
    with pytest.raises(UnsupportedLayerError, match="no axis of channels"):
        mole.augment(bare, mole.MorphKey.generate((8, 8), tile=4, insecure_seed=SEED))


def test_a_layer_that_needs_tiles_says_so():
    with pytest.raises(ParameterError, match="in blocks of rows its augmented layer would take") as refused:
        refuse_too_large(stem(side=448))
    assert refused.value.advice == {"tile": "8"}
    refuse_too_large(stem(side=448), TilesLayout.of_side((3, 448, 448), 8))
    linear = mole.FirstLayer.linear(np.zeros((1 << 10, 1 << 14)), None, input_shape=(1 << 14,))
    refuse_too_large(linear)


def test_a_kernel_that_does_not_fit_is_refused(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(2, 1, 3, 3)), None, input_shape=(1, 8, 8), padding=1)
    made = mole.augment(layer, key_for(layer, 4))
    for wrong in (made.weight[1:], made.weight[:, 1:], made.weight[..., 1:], made.weight.reshape(32, -1)):
        with pytest.raises(ShapeError, match="tiles of side 4 need a kernel of shape"):
            replace(made, weight=wrong)
    with pytest.raises(ShapeError, match="has to say its kernel and stride"):
        replace(made, geometry=None)


def test_kappa_and_tiles_exclude_each_other():
    with pytest.raises(ParameterError, match="leave out kappa"):
        mole.MorphKey.generate((3, 8, 8), kappa=4, tile=4)


@pytest.mark.parametrize(
    ("shape", "tile", "words"),
    [((1, 8, 8), 2, "a tile of 2 leaves a core of side 4, .* use a tile of 4 or more"),
     ((16, 64, 64), 64, "a tile of 64 needs a core of side 65536, .* use a tile of 32 or less")],
)  # fmt: skip
def test_a_core_of_the_wrong_size_names_a_tile_that_fits(shape, tile, words):
    with pytest.raises(ParameterError, match=words):
        mole.MorphKey.generate(shape, tile=tile)


@pytest.mark.parametrize(
    "wrong",
    [{"geometry": LayerGeometry((3, 3), (1, 1), ((1, 10**6), (1, 1)), (1, 1))},
     {"output_shape": (2, 4, 4)}, {"output_shape": (2, 8, 8, 8)}, {"output_shape": (2, 8)}],
)  # fmt: skip
def test_features_that_the_geometry_does_not_give_are_refused(rng, wrong):
    """A file may claim anything: zeros of a terabyte, or another number of axes."""
    layer = mole.FirstLayer.conv(rng.normal(size=(2, 1, 3, 3)), None, input_shape=(1, 8, 8), padding=1)
    made = mole.augment(layer, key_for(layer, 4))
    with pytest.raises(ShapeError, match=r"does not give|does not lead to"):
        replace(made, **wrong)


def test_a_kernel_that_reaches_too_far_is_refused_before_it_is_built():
    weight = np.ones((1, 3, 2, 2))
    far = mole.FirstLayer.conv(weight, None, input_shape=(3, 64, 64), stride=8, dilation=2000, padding=1000)
    with pytest.raises(UnsupportedLayerError, match="reaches over 2001x2001 positions"):
        refuse_too_large(far, TilesLayout.of_side((3, 64, 64), 8))
