"""Shards as they are read: no more of one than is needed, and nothing before its size is known."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mole.errors import DeliveryError
from mole.exchange.shards import (
    IMAGE,
    IMAGE_INT8,
    LABEL,
    ROW_ID,
    SHAPE,
    SOURCE_DTYPE,
    Shard,
    column_of,
    values_path,
)
from mole.foreign_text import shown
from mole.limits import MAX_CLASSES, most_in_a_shard
from mole.quantities import size_text
from mole.scheme.shapes import Shape, element_count, shape_text
from mole.storage.arrow_reading import UNREADABLE, Parquet, SizeError
from mole.storage.parquet_footer import footer_bytes
from mole.storage.stores import Store
from mole.storage.typed_json import FormatError, parse_value

T = TypeVar("T")
ROW_ID_FORM = re.compile("[0-9a-f]{16}")


class ShardFacts(NamedTuple):
    """What a shard tells without its data: its rows, their ids, and the number type of their samples."""

    rows: int
    row_ids: Sequence[str]
    source_dtype: str | None
    metadata: Mapping[bytes, bytes] = MappingProxyType({})


class Promised(NamedTuple):
    """What a delivery says of the values in its shards: the shape of a sample, number type and column."""

    shape: Shape
    dtype: str
    column: str


@dataclass(frozen=True)
class ShardFile:
    """A shard in its store: every reader of one asks here, and reads no more of it than it needs."""

    store: Store
    name: str

    @property
    def label(self) -> str:
        """Its path or URL, for messages."""
        return f"{self.store.label}/{self.name}"

    def facts(self) -> ShardFacts:
        """Its rows' ids and the number type of their samples; the morphed data is not read."""
        ids, metadata = self._ask([ROW_ID], lambda table: (_row_ids(table), table.schema.metadata))
        facts = metadata or {}
        dtype = facts.get(SOURCE_DTYPE)
        text = None if dtype is None else shown(dtype.decode("ascii", "replace"))
        return ShardFacts(len(ids), ids, text, facts)

    def columns(self) -> list[str]:
        """What its columns are called."""
        return self._opened(lambda opened: [*opened.schema.names])

    def row_count(self) -> int:
        """How many rows it has, from the end of the file alone."""
        return int(self._ask([], lambda table: table.num_rows))

    def row_ids(self) -> list[str]:
        """The ids of its rows."""
        return self._ask([ROW_ID], _row_ids)

    def labels(self) -> npt.NDArray[np.int64] | None:
        """The labels of its rows; None where there are none."""
        return self._ask([LABEL], _labels)

    def read(self, shape: Shape, dtype: str, column: str | None = None) -> Shard:
        """All of it but the columns that the provider kept, which nothing here needs.

        Args:
            shape: that of a sample.
            dtype: how values are stored.
            column: what they are called; None for what they are called today.

        Raises:
            DeliveryError: naming it, if it is not what its delivery promises.
        """
        promised = Promised(shape, dtype, column or column_of(dtype))
        wanted = [ROW_ID, promised.column, LABEL]
        return self._ask(wanted, lambda table: self._shard(table, promised), promised)

    def _shard(self, table: pa.Table, promised: Promised) -> Shard:
        values = table[promised.column].combine_chunks().flatten().to_numpy()
        values = values.reshape(len(table), element_count(promised.shape))
        metadata = table.schema.metadata or {}
        return Shard(values, _labels(table), _row_ids(table), {}, metadata=metadata)

    def _ask(
        self,
        columns: Sequence[str],
        question: Callable[[pa.Table], T],
        promised: Promised | None = None,
    ) -> T:
        """What some columns tell; a column that is not there is left out."""
        most = dict.fromkeys(columns, 1)
        if promised is not None:
            most = {ROW_ID: 1, values_path(promised.column): element_count(promised.shape), LABEL: 1}
        return self._opened(lambda opened: question(opened.read(most)), promised)

    def _opened(self, question: Callable[[Parquet], T], promised: Promised | None = None) -> T:
        """What the file tells, after it was seen to be a shard, and to hold what is promised."""
        with self.store.open(self.name) as file:
            try:
                footer_bytes(file)  # no longer than any of ours
                opened = Parquet(file, dictionaries=[ROW_ID])
                opened.check_packing()
                opened.check_rows()
                _check_types(opened.schema)
                if promised is not None:
                    self._check_values(opened, promised)
                return question(opened)
            except SizeError as error:
                raise DeliveryError(f"{self.label} {error}: ask its sender for another") from None
            except (*UNREADABLE, AttributeError) as error:
                raise DeliveryError(f"{self.label} is not a readable shard: {shown(error, 200)}") from None

    def _check_values(self, opened: Parquet, promised: Promised) -> None:
        """Refuse other values than the manifest promises, or more than the file can hold, unread."""
        shape, dtype, column = promised
        if {IMAGE, IMAGE_INT8} <= {*opened.schema.names}:
            raise ValueError(
                "it has two columns of images, of which other readers would take the wrong one"
            )
        field = opened.schema.field(column)
        if not pa.types.is_fixed_size_list(field.type) or _shape_of(field) != shape:
            raise DeliveryError(
                f"{self.label} does not hold tensors of shape {shape_text(shape)}: get it again"
            )
        elements = element_count(shape)
        kind = np.dtype(field.type.value_type.to_pandas_dtype())
        if kind.name != dtype or field.type.list_size != elements:
            raise DeliveryError(
                f"{self.label} holds {field.type.list_size} times {kind} and its manifest says "
                f"{elements} times {dtype}: get it again"
            )
        if opened.rows * elements * kind.itemsize > most_in_a_shard(opened.size):
            raise SizeError(f"says that it has {opened.rows} rows, in {size_text(opened.size)}")


def _check_types(schema: pa.Schema) -> None:
    """Refuse, unread, ids that are no text and labels that are no numbers: a list may be of any length."""
    if ROW_ID in schema.names:
        kind = schema.field(ROW_ID).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not pa.types.is_string(kind):
            raise ValueError("its row ids are not 16 hexadecimal digits each")
    if LABEL in schema.names and not pa.types.is_integer(schema.field(LABEL).type):
        raise ValueError("its labels are not whole numbers")


def _shape_of(field: pa.Field) -> Shape | None:
    try:
        return tuple(parse_value((field.metadata or {}).get(SHAPE, b"[]")))
    except (FormatError, TypeError):
        return None


def _row_ids(table: pa.Table) -> list[str]:
    """The ids of all rows; each different one was stored once, and is looked at once."""
    ids: list[str] = []
    for chunk in table[ROW_ID].chunks:
        texts = chunk.dictionary.to_pylist()
        if chunk.null_count or not all(text is not None and ROW_ID_FORM.fullmatch(text) for text in texts):
            raise ValueError("its row ids are not 16 hexadecimal digits each")
        ids += [texts[index] for index in chunk.indices.to_pylist()]
    return ids


def _labels(table: pa.Table) -> npt.NDArray[np.int64] | None:
    if LABEL not in table.column_names:
        return None
    column = table[LABEL]
    if not pa.types.is_integer(column.type) or column.null_count:
        raise ValueError("its labels are not whole numbers")
    labels: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64)
    if labels.size and not -MAX_CLASSES < labels.min() <= labels.max() < MAX_CLASSES:
        raise ValueError(f"its labels go beyond {MAX_CLASSES}")
    return labels
