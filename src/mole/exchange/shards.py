"""How morphed rows are stored: as numbers of 32, 16 or 8 bits, in Parquet files.

With eight bits and a scale for each element a delivery is as large as the 8-bit images it was made from.
The scales come from a random sample of the data, with room for what other rows may hold; the few values
beyond are clipped, and counted (clipping.py).

A shard is a Parquet file with a column of morphed data, a label, and a random row id. Values lie in a list
of fixed size, whose tensor shape stands in the field's metadata. Arrow has a type for that
(fixed_shape_tensor), but Hugging Face's `datasets` refuses files that use it; its storage, and so every
byte of the values, is this very list.

Numbers of 8 bits mean nothing without their scales, so their column has a name of its own: a reader that
asks for `image` gets an error, not wrong values. The scales stand in each shard, too.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mole.errors import DeliveryError, ParameterError
from mole.foreign_text import shown
from mole.scheme.morphing import narrow
from mole.scheme.shapes import Array, Shape, element_count
from mole.storage.checked import load_checked, write_checked
from mole.storage.stores import Store, stored_file

Dtype = Literal["float32", "float16", "int8"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
LEVELS = 127
NUMBERS_AT_ONCE = 1 << 16  # few enough to stay in the processor's cache from step to step
WRITTEN_AT_ONCE = 1 << 18  # numbers: Parquet's writer takes eight bytes more for each, new every time
MARGIN = 1.05  # over the largest value of the sample
DEVIATIONS = 4.0  # of the sample: the least that the scales reach, because small samples miss the extremes
RESERVED = ROW_ID, IMAGE, IMAGE_INT8, LABEL = ("row_id", "image", "image_int8", "label")
SHAPE, SOURCE_DTYPE, STORED_SCALES = b"shape", b"source_numbers", b"scales"
SCALES, SCALES_HEADER = "scales.safetensors", {"format": "mole-scales", "version": "1"}
MOST_STORED_SCALES = 1 << 15  # in a shard, whose footer has twelve bytes for each: 2 % of a shard at most
MIXED = "float32"  # pixels from 0 to 1: what samples of several number types have in common


def check_dtype(dtype: str) -> Dtype:
    """The same type, unless it is one in which rows are not stored."""
    for known in DTYPES:
        if dtype == known:
            return known
    raise ParameterError(f"data cannot be stored as '{shown(dtype)}'", advice={"dtype": DTYPES})


def column_of(dtype: str) -> str:
    """What the column of morphed values is called.

    >>> column_of("float16"), column_of("int8")
    ('image', 'image_int8')
    """
    return IMAGE_INT8 if dtype == "int8" else IMAGE


def values_path(column: str) -> str:
    """The path of the values of that column in a Parquet file."""
    return f"{column}.list.element"


@dataclass(frozen=True, eq=False)
class Encoding:
    """A number type for stored rows, and for 8 bits the scales, (elements,) of float32.

    >>> rows = np.array([[1.0, -20.0], [0.5, 10.0]], dtype=np.float32)
    >>> eight = Encoding.fit("int8", rows)
    >>> eight.encode(rows)
    array([[121, -42],
           [ 60,  21]], dtype=int8)
    """

    dtype: Dtype
    scales: npt.NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        if (self.dtype == "int8") != (self.scales is not None):
            raise ParameterError("8-bit data has scales, and other data has none")

    @classmethod
    def fit(cls, dtype: Dtype, sample: Array) -> "Encoding":
        """An encoding for rows like these, (b, elements)."""
        if dtype != "int8":
            return cls(dtype)
        reach = np.maximum(MARGIN * np.abs(sample).max(axis=0), DEVIATIONS * sample.std(axis=0))
        smallest_useful = 1e-12 + 1e-6 * reach.max()
        return cls(dtype, (np.maximum(reach, smallest_useful) / LEVELS).astype(np.float32))

    @classmethod
    def reaching(cls, reach: float, elements: int) -> "Encoding":
        """One in 8 bits that holds numbers as far from zero as this, the same for every element."""
        return cls("int8", np.full(elements, reach / LEVELS, np.float32))

    def encode(self, rows: Array, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Rows as they are stored, in `out` if it is given."""
        if self.scales is None:
            return narrow(rows, np.dtype(self.dtype), out)
        stored = np.empty(rows.shape, np.int8) if out is None else out
        per_step, room = 1 / self.scales, None
        for part in row_parts(rows):
            if room is None:
                room = np.empty_like(rows[part], np.result_type(rows, per_step))
            room = np.multiply(rows[part], per_step, out=room[: len(rows[part])])
            np.rint(room, out=room)
            np.clip(room, -LEVELS, LEVELS, out=room)
            np.copyto(stored[part], room, casting="unsafe")
        return stored

    def decode(self, stored: npt.NDArray[Any]) -> Array:
        """Stored rows as float32 again."""
        values = stored.astype(np.float32)
        return values if self.scales is None else values * self.scales

    def metadata(self) -> dict[bytes, bytes]:
        """As it stands in a shard: the scales in base64, unless there are too many of them, or none."""
        if self.scales is None or len(self.scales) > MOST_STORED_SCALES:
            return {}
        return {STORED_SCALES: base64.b64encode(self.scales.astype("<f4").tobytes())}


def row_parts(rows: Array) -> Iterator[slice]:
    """Some rows at a time, the first part not smaller than any other."""
    at_once = max(1, NUMBERS_AT_ONCE // max(1, rows.shape[1]))
    for start in range(0, len(rows), at_once):
        yield slice(start, start + at_once)


def save_encoding(store: Store, encoding: Encoding) -> None:
    """Write the scales of 8-bit data; other data has none."""
    if encoding.scales is not None:
        scales = encoding.scales
        store.make(SCALES, lambda path: write_checked(path, {"scales": scales}, SCALES_HEADER))


def load_encoding(store: Store, dtype: Dtype, shape: Shape) -> Encoding:
    """The encoding of samples of this shape that are stored in this type."""
    if dtype != "int8":
        return Encoding(dtype)
    tensors, metadata = load_checked(stored_file(store, SCALES))
    scales = tensors.get("scales")
    if (
        metadata != SCALES_HEADER
        or scales is None
        or scales.dtype != np.float32
        or scales.shape != (element_count(shape),)
        or not np.isfinite(scales).all()
    ):
        raise DeliveryError(f"{store.label}/{SCALES} does not hold scales: get the delivery again")
    return Encoding(dtype, scales)


class Shard(NamedTuple):
    """The rows of a shard.

    Attributes:
        values: stored morphed values, (b, elements).
        labels: their classes, if there are any.
        row_ids: their names.
        extra: further columns, for writing.
        source_dtype: the number type that the samples had in the source; None in a shard without rows.
        metadata: what else the file says of itself.
    """

    values: npt.NDArray[Any]
    labels: npt.NDArray[np.int64] | None
    row_ids: Sequence[str]
    extra: Mapping[str, Sequence[Any]]
    source_dtype: str | None = None
    metadata: Mapping[bytes, bytes] = MappingProxyType({})


def shard_name(split: str, index: int, count: int) -> str:
    """Where a shard lies in its delivery.

    >>> shard_name("train", 3, 12)
    'data/train-00003-of-00012.parquet'
    """
    return f"data/{split}-{index:05d}-of-{count:05d}.parquet"


def common_dtype(types: Sequence[str | None]) -> str:
    """The number type of samples that may have several.

    >>> common_dtype(["uint8", None, "uint8"]), common_dtype(["uint8", "uint16"])
    ('uint8', 'float32')
    """
    known = {dtype for dtype in types if dtype is not None}
    return known.pop() if len(known) == 1 else MIXED


# pa.array does this, too, but loads pandas where it is installed, to see whether it was given its types:
# a second of a processor's time for every command that writes a shard.
def _numbers(values: npt.NDArray[Any]) -> pa.Array:
    """Numbers where they are, (n,)."""
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(native.dtype), len(native), [None, pa.py_buffer(native)]
    )


def _texts(values: Sequence[str]) -> pa.StringArray:
    """Texts one after the other."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def _lists(values: npt.NDArray[Any], elements: int) -> pa.ChunkedArray:
    """Rows as lists of fixed size, some rows a chunk; the writer takes one chunk after the other."""
    at_once = max(1, WRITTEN_AT_ONCE // elements)
    flat = _numbers(np.ascontiguousarray(values).reshape(-1))
    starts = range(0, max(1, len(values)), at_once)
    return pa.chunked_array(
        [
            pa.FixedSizeListArray.from_arrays(
                flat[start * elements : (start + at_once) * elements], elements
            )
            for start in starts
        ]
    )


def write_shard(shard: Shard, shape: Shape, path: Path) -> None:
    """Write a shard as a Parquet file."""
    column = column_of(shard.values.dtype.name)
    columns = {
        ROW_ID: _texts(shard.row_ids),
        column: _lists(shard.values, element_count(shape)),
    }
    if shard.labels is not None:
        columns[LABEL] = _numbers(shard.labels.astype(np.int64))
    columns.update({name: pa.array(values) for name, values in shard.extra.items()})
    table = pa.table(columns)
    image = table.schema.get_field_index(column)
    tensor = table.schema.field(image).with_metadata({SHAPE: json.dumps(shape)})
    schema = table.schema.set(image, tensor)
    numbers = {} if shard.source_dtype is None else {SOURCE_DTYPE: shard.source_dtype}
    if numbers or shard.metadata:
        schema = schema.with_metadata({**numbers, **shard.metadata})
    # Morphed values do not compress. Parquet has no 8-bit type of its own and would store such values in
    # four bytes each, but a dictionary of 256 entries puts each into one.
    is_small = shard.values.dtype.itemsize == 1
    pq.write_table(
        pa.Table.from_arrays(table.columns, schema=schema),
        path,
        compression="none",
        use_dictionary=[values_path(column)] if is_small else False,
        write_statistics=False,
        write_batch_size=1 << 17,  # values that go through the writer together
        data_page_size=1 << 17,  # bytes, which the writer collects in new memory each time
    )
