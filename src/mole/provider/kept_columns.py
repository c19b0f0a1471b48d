"""Further columns that the provider hands over: in plain types, the same ones in every shard.

A shard in which a column happens to be empty, or a type that only some readers know, would stop a reader in
the middle of a data set.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from mole.errors import ParameterError
from mole.exchange.shards import RESERVED
from mole.sources.source import Source


def kept_types(source: Source, keep: Sequence[str]) -> dict[str, pa.DataType]:
    """The type of each column that leaves, one for all splits.

    Raises:
        ParameterError: for a column that is not there, that differs between splits, or whose name is taken.
    """
    types: dict[str, pa.DataType] = {}
    for column in keep:
        if column in RESERVED:
            raise ParameterError(
                f"column '{column}' cannot be kept: a delivery has one of that name itself: rename it"
            )
        found = [_type_of(_column(split.extra, column, name)) for name, split in source.splits.items()]
        try:
            schemas = [pa.schema([(column, kind)]) for kind in found]
            types[column] = pa.unify_schemas(schemas).field(column).type
        except pa.ArrowException:
            raise ParameterError(
                f"column '{column}' holds {' and '.join(map(str, found))} in different splits: "
                "make them one type, or leave it out"
            ) from None
    return types


def kept_values(values: Sequence[Any], indices: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Some cells of a column, in the type that the whole delivery has."""
    cells = (values[index] for index in indices)
    return pa.array([cell.as_py() if isinstance(cell, pa.Scalar) else cell for cell in cells], kind)


def _column(extra: Mapping[str, Sequence[Any]], column: str, split: str) -> Sequence[Any]:
    if column not in extra:
        known = ", ".join(extra) or "none"
        raise ParameterError(f"split '{split}' has no column '{column}' to keep: it has {known}")
    return extra[column]


def _type_of(values: Sequence[Any]) -> pa.DataType:
    kind = values.type if isinstance(values, pa.ChunkedArray) else pa.array(values).type
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
