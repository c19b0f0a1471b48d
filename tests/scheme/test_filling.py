"""Zeros that fill the last tiles: shapes, samples, and the layer on filled samples."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mole
from mole.errors import ParameterError, ShapeError, UnsupportedLayerError
from mole.scheme.convolution import features_of
from mole.scheme.filling import filled, filled_layer, filled_shape, tiles_over, without_filling
from mole.scheme.layer_matrix import layer_matrix
from mole.scheme.layer_sizes import refuse_too_large
from mole.scheme.layouts import Layout, TilesLayout
from strategies import convolution_cases, fewer_examples

SEED, OTHER_SEED = bytes(range(32)), bytes(32)


def whole_for(layer: mole.FirstLayer, tile: int) -> tuple[int, ...]:
    return filled_shape(layer.input_shape, tile)


def with_zeros(batch: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """NumPy's own padding."""
    ends = [(0, whole - side) for whole, side in zip(shape, batch.shape[1:], strict=True)]
    return np.pad(batch, [(0, 0), *ends])


@fewer_examples(0.5)
@given(convolution_cases(), st.integers(1, 5))
def test_a_layer_on_filled_samples_gives_torchs_features_of_plain_ones(case, tile):
    whole = whole_for(case.layer, tile)
    on_tiles, samples = filled_layer(case.layer, whole), with_zeros(case.batch, whole)
    expected = case.torch_features()
    assert on_tiles.output_shape == expected.shape[1:]
    assert np.allclose(features_of(on_tiles, samples), expected, atol=1e-9)
    without_bias = replace(on_tiles, bias=None)
    linear = samples.reshape(len(samples), -1) @ layer_matrix(without_bias)
    assert np.allclose(linear.reshape(expected.shape), features_of(without_bias, samples), atol=1e-9)


@fewer_examples(0.5)
@given(convolution_cases(), st.integers(1, 3))
def test_tiles_give_torchs_features_of_samples_that_they_do_not_fill(case, times):
    tile = times * int(np.lcm.reduce(case.layer.stride))
    if tile > min(case.layer.grid):
        with pytest.raises(ParameterError, match="cannot be cut into tiles"):
            tiles_over(case.layer.input_shape, 2 * max(case.layer.grid))
        return
    keys = [
        mole.MorphKey.generate(case.layer.input_shape, tile=tile, insecure_seed=seed)
        for seed in (SEED, OTHER_SEED)
    ]
    key, other = keys
    augmented = mole.augment(case.layer, key, dtype="float64")
    assert augmented.network_shape == case.layer.input_shape
    morphed = mole.morph(case.batch, key)
    assert morphed.shape[1:] == augmented.input_shape == whole_for(case.layer, tile)
    expected = case.torch_features()[:, key.channel_order(case.layer.channels)]
    assert np.allclose(augmented.features(morphed), expected, atol=1e-9)
    back = without_filling(mole.unmorph(morphed, key), case.layer.input_shape)
    assert np.allclose(back, case.batch, atol=1e-9)
    if key.morphing.core.size > 1 and layer_matrix(case.layer).any():
        assert not np.allclose(augmented.features(mole.morph(case.batch, other)), expected, atol=1e-7)


def test_zeros_stand_at_the_end_of_each_axis_of_positions(rng):
    samples = rng.normal(size=(2, 3, 5, 7)).astype(np.float32)
    layout = TilesLayout.of_side((3, 8, 8), 4)
    assert np.array_equal(filled(samples, layout), with_zeros(samples, (3, 8, 8)))
    assert filled(samples, layout).dtype == np.float32
    as_they_are = rng.normal(size=(2, 3, 8, 8))
    assert filled(as_they_are, layout) is as_they_are


@pytest.mark.parametrize("shape", [(3, 4, 8), (3, 9, 8), (2, 7, 7), (3, 8), (3, 5, 5, 5)])
def test_other_samples_are_not_filled(shape):
    key = mole.MorphKey.generate((3, 7, 7), tile=4, insecure_seed=SEED)
    with pytest.raises(ShapeError, match=r"does not fit: expected \(batch, 3, 8, 8\)"):
        mole.morph(np.zeros((2, *shape)), key)
    rows = mole.MorphKey.generate((3, 8, 8), insecure_seed=SEED)
    with pytest.raises(ShapeError, match="does not fit"):
        mole.morph(np.zeros((2, 3, 7, 7)), rows)


def test_a_key_is_for_filled_samples_and_others_make_another():
    key = mole.MorphKey.generate((3, 225, 225), tile=8, insecure_seed=SEED)
    assert (key.input_shape, key.kappa, key.tile) == ((3, 232, 232), 29 * 29, 8)
    same = mole.MorphKey.generate((3, 232, 232), tile=8, insecure_seed=SEED)
    assert same.fingerprint == key.fingerprint
    other = mole.MorphKey.generate((3, 224, 224), tile=8, insecure_seed=SEED)
    assert other.fingerprint != key.fingerprint


def test_a_layer_of_another_size_needs_another_key(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(2, 1, 3, 3)), None, input_shape=(1, 24, 24), padding=1)
    key = mole.MorphKey.generate((1, 28, 28), tile=8, insecure_seed=SEED)
    with pytest.raises(ShapeError, match="make a key for this layer"):
        mole.augment(layer, key)


def test_a_plain_shape_that_does_not_fill_the_tiles_is_refused(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(2, 1, 3, 3)), None, input_shape=(1, 28, 28), padding=1)
    made = mole.augment(layer, mole.MorphKey.generate((1, 28, 28), tile=8, insecure_seed=SEED))
    assert made.plain_shape == (1, 28, 28)
    for wrong in ((1, 32, 32), (1, 24, 28), (1, 33, 32), (2, 28, 28), (1, 28)):
        with pytest.raises(ShapeError, match="are not those that zeros make 1x32x32 of"):
            replace(made, plain_shape=wrong)
    rows = mole.augment(layer, mole.MorphKey.generate((1, 28, 28), insecure_seed=SEED, kappa=4))
    with pytest.raises(ShapeError, match="are not those"):
        replace(rows, plain_shape=(1, 27, 27))
    assert rows.plain_shape is None


def test_a_first_layer_may_leave_out_the_end_of_an_axis_but_not_its_beginning():
    def layer(padding):
        return mole.FirstLayer.conv(np.ones((1, 1, 2)), None, input_shape=(1, 5), padding=padding)

    assert layer(((0, -2),)).output_shape == (1, 2)
    for padding in (((-1, 0),), ((3, -5),), -1):
        with pytest.raises(UnsupportedLayerError, match="padding must not be negative"):
            layer(padding)


def test_a_tile_is_proposed_for_sizes_that_none_fills():
    weight = np.zeros((64, 3, 7, 7), np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(3, 449, 449), stride=2, padding=3)
    with pytest.raises(ParameterError) as refused:
        refuse_too_large(layer)
    assert refused.value.advice == {"tile": "8"}
    refuse_too_large(layer, tiles_over(layer.input_shape, 8))
    assert isinstance(Layout.of("tiles", (3, 456, 456), 57 * 57), TilesLayout)
