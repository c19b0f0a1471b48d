"""The shards of one split, read when they are needed; those used last stay in memory."""

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mole.errors import DeliveryError
from mole.exchange.manifest import Manifest
from mole.exchange.shards import LABEL, ROW_ID, ShardFile, shard_name
from mole.storage.stores import Store, open_store

Answer = TypeVar("Answer")


class Rows(NamedTuple):
    """What is kept of a shard: stored values (rows, elements), and labels if it has any."""

    values: npt.NDArray[Any]
    labels: npt.NDArray[np.int64] | None


class ShardCache:
    """Shards by number, each read once as long as there is room.

    It can be copied to other processes: each opens the files itself, when it first needs one.
    """

    def __init__(self, delivery: str, manifest: Manifest, split: str, *, cache_bytes: int) -> None:
        count = manifest.splits[split].shards
        self.names = [shard_name(split, index, count) for index in range(count)]
        self._delivery = delivery
        self._shape, self._dtype = manifest.input_shape, manifest.dtype
        self._cache_bytes = cache_bytes
        self._kept: OrderedDict[int, Rows] = OrderedDict()
        self._store: tuple[int, Store] | None = None

    def __getitem__(self, index: int) -> Rows:
        """A shard, from memory or from its file."""
        if index not in self._kept:
            self._make_room()
            self._kept[index] = self._read(index)
        self._kept.move_to_end(index)
        return self._kept[index]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but open files and the shards in memory."""
        return {**self.__dict__, "_kept": OrderedDict(), "_store": None}

    def row_counts(self) -> list[int]:
        """Rows of each shard, from the ends of the files."""
        return [self._ask(name, lambda file: int(file.metadata.num_rows)) for name in self.names]

    def labels(self) -> npt.NDArray[np.int64] | None:
        """The label of every row, or None where there are none."""
        columns = [self._ask(name, _labels_in) for name in self.names]
        found = [column for column in columns if column is not None]
        return np.concatenate(found) if found else None

    def row_ids(self) -> list[str]:
        """The id of every row."""
        return [
            row_id
            for name in self.names
            for row_id in self._ask(name, lambda file: file.read(columns=[ROW_ID])[ROW_ID].to_pylist())
        ]

    def _make_room(self) -> None:
        """Forget what was not used for longest; shards have about the same size."""
        largest = max((rows.values.nbytes for rows in self._kept.values()), default=0)
        while self._kept and (len(self._kept) + 1) * largest > self._cache_bytes:
            self._kept.popitem(last=False)

    def _read(self, index: int) -> Rows:
        store, name = self._opened(), self.names[index]
        shard = ShardFile(store, name).read(self._shape, self._dtype)
        return Rows(shard.values, shard.labels)

    def _ask(self, name: str, question: Callable[[Any], Answer]) -> Answer:
        store = self._opened()
        try:
            with store.open(name) as file:
                return question(pq.ParquetFile(file))
        except (pa.ArrowException, KeyError, OSError) as error:
            raise DeliveryError(f"{store.label}/{name} is not a readable shard: {error}") from None

    def _opened(self) -> Store:
        """The store, opened in this process: a connection does not survive a fork."""
        if self._store is None or self._store[0] != os.getpid():
            self._store = (os.getpid(), open_store(self._delivery))
        return self._store[1]


def _labels_in(file: Any) -> npt.NDArray[np.int64] | None:
    if LABEL not in file.schema_arrow.names:
        return None
    column: npt.NDArray[np.int64] = file.read(columns=[LABEL])[LABEL].to_numpy().astype(np.int64)
    return column
