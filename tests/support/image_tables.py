"""Tables of images: a column of pixels in every form that is read, and what opening a table gives."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mole.errors import SourceError
from mole.sources.opening import open_source

ROWS = 4


def png(pixels):
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, "PNG")
    return sink.getvalue()


def structs(pixels):
    return pa.array([{"bytes": png(image), "path": None} for image in pixels])


def raw_bytes(pixels):
    return pa.array([png(image) for image in pixels])


def large_bytes(pixels):
    return raw_bytes(pixels).cast(pa.large_binary())


def tensors(pixels):
    return pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)


def nested_lists(pixels):
    return pa.array(pixels.tolist(), pa.list_(pa.list_(pa.list_(pa.uint8()))))


def fixed_lists(pixels):
    return pa.array(pixels.tolist(), pa.list_(pa.list_(pa.list_(pa.uint8(), 3), 7), 6))


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def assert_pixels(split, pixels):
    assert len(split) == len(pixels)
    for index, image in enumerate(pixels):
        values, axes = split.read(index)
        assert (values.dtype, axes) == (np.uint8, "hwc")
        np.testing.assert_array_equal(values, image)


def refusal(path, named=None):
    with pytest.raises(SourceError) as caught:
        open_source(str(path))
    assert str(named or path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)
