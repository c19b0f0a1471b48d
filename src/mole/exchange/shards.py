"""Shards: Parquet files with a column of morphed data, a label, and a random row id.

Values lie in a list of fixed size, whose tensor shape stands in the field's metadata. Arrow has a type for
that (fixed_shape_tensor), but Hugging Face's `datasets` refuses files that use it; its storage, and so
every byte of the values, is this very list.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mole.errors import DeliveryError
from mole.scheme.shapes import Shape, element_count
from mole.storage.stores import Store

RESERVED = ROW_ID, IMAGE, LABEL = ("row_id", "image", "label")
TENSOR_VALUES = f"{IMAGE}.list.element"
SHAPE, NUMBERS = b"shape", b"source_numbers"
MIXED = "float32"  # pixels from 0 to 1: what samples of several number types have in common


class Shard(NamedTuple):
    """The rows of a shard.

    Attributes:
        values: stored morphed values, (b, elements).
        labels: their classes, if there are any.
        row_ids: their names.
        extra: further columns.
        numbers: the number type that the samples had in the source; None in a shard without rows.
    """

    values: npt.NDArray[Any]
    labels: npt.NDArray[np.int64] | None
    row_ids: Sequence[str]
    extra: Mapping[str, Sequence[Any]]
    numbers: str | None = None


class ShardFacts(NamedTuple):
    """What the end of a shard's file tells: its rows, and the number type of their samples."""

    rows: int
    numbers: str | None


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
    known = {numbers for numbers in types if numbers is not None}
    return known.pop() if len(known) == 1 else MIXED


def write_shard(shard: Shard, shape: Shape, path: Path) -> None:
    """Write a shard as a Parquet file."""
    flat = pa.array(np.ascontiguousarray(shard.values).reshape(-1))
    columns = {
        ROW_ID: pa.array(shard.row_ids, pa.string()),
        IMAGE: pa.FixedSizeListArray.from_arrays(flat, element_count(shape)),
    }
    if shard.labels is not None:
        columns[LABEL] = pa.array(shard.labels)
    columns.update({name: pa.array(values) for name, values in shard.extra.items()})
    table = pa.table(columns)
    image = table.schema.get_field_index(IMAGE)
    tensor = table.schema.field(image).with_metadata({SHAPE: json.dumps(shape)})
    schema = table.schema.set(image, tensor)
    if shard.numbers is not None:
        schema = schema.with_metadata({NUMBERS: shard.numbers})
    # Morphed values do not compress. Parquet has no 8-bit type of its own and would store such values in
    # four bytes each, but a dictionary of 256 entries puts each into one.
    is_small = shard.values.dtype.itemsize == 1
    pq.write_table(
        pa.Table.from_arrays(table.columns, schema=schema),
        path,
        compression="none",
        use_dictionary=[TENSOR_VALUES] if is_small else False,
        write_statistics=False,
        write_batch_size=1 << 17,  # values that go through the writer together
    )


def read_shard(file: IO[bytes], name: str, shape: Shape, dtype: str) -> Shard:
    """The rows of a shard; an error that names it if it is not what its delivery promises."""
    try:
        table = pq.read_table(file)
        field = table.schema.field(IMAGE)
        if tuple(json.loads((field.metadata or {}).get(SHAPE, b"[]"))) != shape:
            raise DeliveryError(f"{name} does not hold tensors of shape {shape}: get it again")
        values = table[IMAGE].combine_chunks().flatten().to_numpy()
        values = values.reshape(len(table), element_count(shape))
        labels = table[LABEL].to_numpy().astype(np.int64) if LABEL in table.column_names else None
        ids = table[ROW_ID].to_pylist()
    except (pa.ArrowException, KeyError, OSError, ValueError, TypeError, AttributeError) as error:
        raise _unreadable(name, error) from None
    if values.dtype.name != dtype:
        raise DeliveryError(f"{name} holds {values.dtype} and its manifest says {dtype}: get it again")
    extra = {name: table[name].to_pylist() for name in table.column_names if name not in RESERVED}
    return Shard(values, labels, ids, extra)


def shard_facts(store: Store, name: str) -> ShardFacts:
    """What the end of a shard's file tells; the rest of it is not read."""
    with store.open(name) as file:
        try:
            opened = pq.ParquetFile(file)
            numbers = (opened.schema_arrow.metadata or {}).get(NUMBERS)
            return ShardFacts(opened.metadata.num_rows, None if numbers is None else numbers.decode())
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(f"{store.label}/{name}", error) from None


def shard_row_ids(store: Store, name: str) -> list[str]:
    """The ids of a shard's rows, without the rest of it."""
    with store.open(name) as file:
        try:
            ids: list[str] = pq.ParquetFile(file).read(columns=[ROW_ID])[ROW_ID].to_pylist()
        except (pa.ArrowException, KeyError, OSError) as error:
            raise _unreadable(f"{store.label}/{name}", error) from None
    return ids


def _unreadable(name: str, error: Exception) -> DeliveryError:
    return DeliveryError(f"{name} is not a readable shard: {error}")
