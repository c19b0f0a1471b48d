"""One way to plain data: a batch in Python and a delivery of the same images agree to the bit."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_limits

import mole
from deliveries import SHAPE, make_key, make_layer, tensors
from mole.errors import ShapeError
from mole.provider.deliver import deliver
from mole.scheme.normalisation import Normalisation, plain_data
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.storage.stores import LocalStore

DTYPES = ["uint8", "uint16", "float32"]
NORMALISATIONS = [None, Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
COUNT = 40


def images_of(rng, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.random((COUNT, *SHAPE)).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, (COUNT, *SHAPE), dtype=dtype, endpoint=True)


def layer_with(normalisation):
    layer = make_layer()
    return mole.FirstLayer.conv(
        layer.weight, layer.bias, input_shape=SHAPE, padding=1, normalisation=normalisation
    )


def same_bits(some, others):
    return some.dtype == others.dtype and np.array_equal(some.view(np.uint32), others.view(np.uint32))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("dtype", [*DTYPES, ">u2", "uint32", "float16", "float64"])
def test_layer_and_preparation_agree_to_the_bit(rng, dtype, normalisation):
    images, layer = (
        images_of(rng, np.dtype(dtype).newbyteorder("=")).astype(dtype),
        layer_with(normalisation),
    )
    plain = layer.plain(images)
    assert plain.dtype == np.float32
    assert same_bits(plain, Preparation.for_layer(layer).plain(images))
    assert same_bits(plain, plain_data(images, normalisation))
    one_by_one = [layer.plain(image[np.newaxis]) for image in images]
    assert same_bits(plain, np.concatenate(one_by_one))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_delivery_holds_the_plain_data_of_its_layer_to_the_bit(tmp_path, rng, dtype, normalisation):
    images, layer, key = images_of(rng, dtype), layer_with(normalisation), make_key()
    np.savez(tmp_path / "data.npz", x_train=images, y_train=np.arange(COUNT))
    source = open_source(str(tmp_path / "data.npz"))
    deliver(source, layer, key, LocalStore(tmp_path / "out"))
    table = pq.read_table(tmp_path / "out" / "data", partitioning=None)
    order = table["label"].to_numpy()  # a label for each sample, so the secret order shows
    assert not np.array_equal(order, np.arange(COUNT))
    delivered = np.ascontiguousarray(tensors(table))
    with threadpool_limits(1):  # as a delivery multiplies: two threads add up in another order
        assert same_bits(delivered, mole.morph(layer.plain(images[order]), key))
    other = images.copy()
    other[order[0], 0, 0, 0] = 0 if images[order[0], 0, 0, 0] else 1
    assert not same_bits(delivered, mole.morph(layer.plain(other[order]), key))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_every_byte_without_a_product_in_between(normalisation):
    """The numbers that deliveries have always held: with a normalisation scaled and normalised at once."""
    every = np.broadcast_to(np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16), (1, 3, 16, 16))
    expected = every.astype(np.float32)
    if normalisation is None:
        expected /= np.float32(255)
    else:
        mean, std = (np.reshape(values, (3, 1, 1)) for values in (normalisation.mean, normalisation.std))
        expected *= (1 / (255 * std)).astype(np.float32)
        expected -= (mean / std).astype(np.float32)
    assert same_bits(plain_data(every, normalisation), expected)


def test_what_cannot_be_pixels_is_refused_with_and_without_a_layer(rng):
    bad = {
        "int64": (np.zeros((2, *SHAPE), np.int64), "pixels are int64"),
        "bool": (np.zeros((2, *SHAPE), bool), "pixels are bool"),
        "nan": (np.full((2, *SHAPE), np.nan), "a NaN"),
        "huge": (np.full((2, *SHAPE), 1e300), "beyond 32 bits"),
        "list": ([[1.0]], "not a NumPy array"),
    }
    for images, reason in bad.values():
        for plain in (layer_with(None).plain, Preparation(SHAPE).plain):
            with pytest.raises(ShapeError, match=reason):
                plain(images)


def test_floats_above_one_are_refused_only_where_a_normalisation_expects_pixels():
    images = np.full((2, *SHAPE), 255.0)
    for plain in (layer_with(None).plain, Preparation(SHAPE).plain):
        assert plain(images).max() == 255
    for plain in (layer_with(NORMALISATIONS[1]).plain, Preparation(SHAPE, NORMALISATIONS[1]).plain):
        with pytest.raises(ShapeError, match="floats up to 255, far above 1"):
            plain(images)


def test_a_layer_refuses_images_of_another_shape(rng):
    for shape in ((2, 3, 8, 9), (2, 1, 8, 8), SHAPE):
        with pytest.raises(ShapeError, match=r"do not fit: expected \(batch, 3, 8, 8\)"):
            layer_with(None).plain(np.zeros(shape, np.uint8))


def test_nothing_given_is_changed(rng):
    for dtype in DTYPES:
        images = images_of(rng, dtype)
        before = images.copy()
        for normalisation in NORMALISATIONS:
            plain_data(images, normalisation)[:] = 7
        assert np.array_equal(images, before)
