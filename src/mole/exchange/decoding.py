"""Rows of a delivery as any reader of Parquet gives them, made into morphed samples.

    table = pyarrow.parquet.read_table("delivery/data")
    images = mole.decode(table, "delivery")          # float32, (rows, *shape)

Stored numbers of 8 bits have a scale for each element, which lies beside the data: whoever takes them as
they are computes something else than the provider did, and nothing says so.
"""

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mole.errors import ShapeError
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import Manifest
from mole.exchange.shards import LEVELS
from mole.foreign_text import listed
from mole.scheme.shapes import Array, element_count, shape_text

AS_READ = "give rows of this delivery, as they were read"


def decode(rows: Any, delivery: str | PathLike[str] | Delivery) -> Array:
    """Morphed samples, float32 of (rows, *shape), from what a reader of a delivery's files gives.

        mole.decode(polars.read_parquet("delivery/data/train-*.parquet"), "delivery")
        mole.decode(datasets.load_dataset("delivery")["train"][:64], "delivery")

    Args:
        rows: a table, batch or column of pyarrow; a frame or series of polars or pandas; a data set, batch
            or row of Hugging Face's `datasets`; or an array of stored values, (rows, elements) or
            (rows, *shape). A single row gives a single sample; a table, a column or an array of
            (1, elements) is never a single row, but one of several that happens to be alone.
        delivery: the delivery that they are from, opened, or its folder or URL. It is opened anew for each
            call unless it is open already.

    Raises:
        ShapeError: if the rows cannot be of this delivery.
    """
    opened = Delivery.open(delivery)
    manifest = opened.manifest
    values = _checked(_values(rows, manifest), manifest)
    elements = element_count(manifest.input_shape)
    is_table = values.ndim == 2 and values.shape[1] == elements  # a signal may be (1, elements), too
    is_one = not is_table and values.shape in (manifest.input_shape, (elements,))
    samples = opened.encoding.decode(values.reshape(-1, elements))
    return samples.reshape(manifest.input_shape if is_one else (-1, *manifest.input_shape))


def _values(rows: Any, manifest: Manifest) -> npt.NDArray[Any]:
    """The stored values in whatever holds them."""
    column = manifest.column
    if hasattr(rows, "select_columns") and hasattr(rows, "with_format"):  # a data set of `datasets`
        _check_column(column, rows.column_names)
        rows = rows.select_columns(column).with_format("arrow")[:]
    elif hasattr(rows, "to_arrow"):  # polars
        rows = rows.to_arrow()
    if isinstance(rows, pa.Table | pa.RecordBatch):
        _check_column(column, rows.schema.names)
        rows = rows[column]
    elif isinstance(rows, Mapping) or hasattr(rows, "columns"):
        _check_column(column, list(rows if isinstance(rows, Mapping) else rows.columns))
        rows = rows[column]
    if isinstance(rows, pa.ChunkedArray | pa.Array):
        return _from_arrow(rows, manifest)
    try:
        found = np.asarray(rows)
        return np.stack(list(found)) if found.dtype == object and len(found) else found
    except (TypeError, ValueError):
        raise ShapeError(f"a {type(rows).__name__} does not hold rows of equal length: {AS_READ}") from None


def _check_column(column: str, names: list[str]) -> None:
    if column not in names:
        raise ShapeError(f"there is no column '{column}' among {listed(map(str, names))}: {AS_READ}")


def _from_arrow(column: pa.ChunkedArray | pa.Array, manifest: Manifest) -> npt.NDArray[Any]:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not hasattr(whole, "flatten") or whole.null_count:
        raise ShapeError(f"a column of {column.type} does not hold lists of numbers: {AS_READ}")
    flat = whole.flatten()
    elements = element_count(manifest.input_shape)
    if flat.null_count or len(flat) != len(whole) * elements:
        raise ShapeError(
            f"a column of {column.type} does not hold {elements} numbers in each row: {AS_READ}"
        )
    values: npt.NDArray[Any] = flat.to_numpy(zero_copy_only=False)
    return values.reshape(len(whole), elements)


def _checked(values: npt.NDArray[Any], manifest: Manifest) -> npt.NDArray[Any]:
    """The same values, unless they are of another shape or kind than the delivery's."""
    shape, elements = manifest.input_shape, element_count(manifest.input_shape)
    if values.shape not in (shape, (elements,)) and values.shape[1:] not in (shape, (elements,)):
        raise ShapeError(
            f"an array of shape {values.shape} does not hold samples of {shape_text(shape)}: {AS_READ}"
        )
    is_int8 = manifest.dtype == "int8"
    if values.dtype.kind not in ("iu" if is_int8 else "f"):
        raise ShapeError(
            f"the delivery holds {manifest.dtype} and these values are {values.dtype}: {AS_READ}, "
            "and not what was made of them"
        )
    if is_int8 and values.size and not -LEVELS <= values.min() <= values.max() <= LEVELS:
        raise ShapeError(f"some values are beyond {LEVELS}, and none in the delivery is: {AS_READ}")
    return values
