"""Shards: Parquet files with a tensor column of morphed data, a label, and a random row id."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mole.errors import DeliveryError
from mole.geometry import Shape, element_count

IMAGE, LABEL, ROW_ID = "image", "label", "row_id"
TENSOR_VALUES = f"{IMAGE}.list.element"


class Shard(NamedTuple):
    """The rows of a shard: stored morphed values (b, elements), labels, ids, further columns."""

    values: npt.NDArray[Any]
    labels: npt.NDArray[np.int64] | None
    row_ids: Sequence[str]
    extra: Mapping[str, Sequence[Any]]


def shard_name(split: str, index: int, count: int) -> str:
    """Where a shard lies in its delivery.

    >>> shard_name("train", 3, 12)
    'data/train-00003-of-00012.parquet'
    """
    return f"data/{split}-{index:05d}-of-{count:05d}.parquet"


def write_shard(shard: Shard, shape: Shape, path: Path) -> None:
    """Write a shard as a Parquet file."""
    flat = pa.array(np.ascontiguousarray(shard.values).reshape(-1))
    storage = pa.FixedSizeListArray.from_arrays(flat, element_count(shape))
    tensor = pa.fixed_shape_tensor(flat.type, shape)
    columns = {ROW_ID: pa.array(shard.row_ids), IMAGE: pa.ExtensionArray.from_storage(tensor, storage)}
    if shard.labels is not None:
        columns[LABEL] = pa.array(shard.labels)
    columns.update({name: pa.array(values) for name, values in shard.extra.items()})
    # Morphed values do not compress. Parquet has no 8-bit type of its own and would store such values in
    # four bytes each, but a dictionary of 256 entries puts each into one.
    is_small = shard.values.dtype.itemsize == 1
    pq.write_table(
        pa.table(columns),
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
        kind = table.schema.field(IMAGE).type
        if not isinstance(kind, pa.FixedShapeTensorType) or tuple(kind.shape) != shape:
            raise DeliveryError(f"{name} does not hold tensors of shape {shape}: get it again")
        values = table[IMAGE].combine_chunks().to_numpy_ndarray().reshape(len(table), -1)
        labels = table[LABEL].to_numpy().astype(np.int64) if LABEL in table.column_names else None
        ids = table[ROW_ID].to_pylist()
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        raise DeliveryError(f"{name} is not a readable shard: {error}") from None
    if values.dtype.name != dtype:
        raise DeliveryError(f"{name} holds {values.dtype} and its manifest says {dtype}: get it again")
    known = {IMAGE, LABEL, ROW_ID}
    extra = {name: table[name].to_pylist() for name in table.column_names if name not in known}
    return Shard(values, labels, ids, extra)


def count_rows(content: bytes) -> int:
    """Number of rows in the bytes of a shard."""
    return int(pq.read_metadata(io.BytesIO(content)).num_rows)
