"""One shard: read, prepare, morph, encode, write. The same function serves every engine."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.encoding import Encoding
from mole.exchange.shards import Shard, common_dtype, shard_name, write_shard
from mole.provider.kept_columns import kept_types, kept_values
from mole.provider.keys import MorphKey
from mole.scheme.shapes import Array, Shape, element_count, unroll
from mole.sources.preparation import Preparation, shaped_sample
from mole.sources.source import BadSampleError, Source, Split
from mole.storage.stores import Store

PIECE_BYTES = 1 << 24  # of 32-bit values, worked on at a time


@dataclass(frozen=True)
class ShardJob:
    """Which rows of which split make up a shard."""

    split: str
    index: int
    count: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """Number of rows, before bad samples are left out."""
        return self.stop - self.start

    def pieces(self, rows: int) -> Iterator["ShardJob"]:
        """The same rows in parts of at most so many."""
        for start in range(self.start, self.stop, rows):
            yield replace(self, start=start, stop=min(start + rows, self.stop))

    @property
    def name(self) -> str:
        """Where the shard lies in its delivery."""
        return shard_name(self.split, self.index, self.count)


class PlainRows(NamedTuple):
    """Plain data of some rows, where they stand in their split, and the number types of the samples."""

    plain: Array
    positions: list[int]
    source_dtypes: set[str]


class ShardMaker:
    """Makes the shards of one delivery."""

    def __init__(
        self,
        source: Source,
        key: MorphKey,
        preparation: Preparation,
        delivery_id: str,
        *,
        keep: Sequence[str],
        skip_bad: bool,
        decoders: Executor | None = None,
    ) -> None:
        self._source = source
        self._key = key
        self._preparation = preparation
        self._skip_bad = skip_bad
        self._decoders = decoders
        self._kept = kept_types(source, keep)
        sizes = {name: len(split) for name, split in source.splits.items()}
        self.delivery_id = delivery_id
        self._orders = {name: key.row_order(delivery_id, name, size) for name, size in sizes.items()}
        self._row_ids = {name: key.row_ids(delivery_id, name, size) for name, size in sizes.items()}

    @property
    def input_shape(self) -> Shape:
        """Shape of a sample."""
        return self._preparation.input_shape

    def write(self, job: ShardJob, encoding: Encoding, store: Store) -> None:
        """Make a shard and write it."""
        shard = self.make(job, encoding)
        store.make(job.name, lambda path: write_shard(shard, self.input_shape, path))

    def make(self, job: ShardJob, encoding: Encoding) -> Shard:
        """A shard, piece by piece: small arrays are used again where large ones would be new each time."""
        elements = element_count(self.input_shape)
        values = np.empty((job.rows, elements), encoding.dtype)
        positions: list[int] = []
        dtypes: set[str] = set()
        for piece in job.pieces(max(1, PIECE_BYTES // (4 * elements))):
            rows = self.read(piece)
            filled = slice(len(positions), len(positions) + len(rows.plain))
            values[filled] = encoding.encode(self.morphed(rows))
            positions += rows.positions
            dtypes |= rows.source_dtypes
        return self._shard(job.split, values[: len(positions)], positions, dtypes)

    def read(self, job: ShardJob) -> PlainRows:
        """Plain data of a shard's rows, in their secret order; without bad samples, if they are skipped."""
        split = self._source.splits[job.split]
        indices = self._orders[job.split][job.start : job.stop].tolist()
        results = self._read_all(split, indices)
        bad = [result for result in results if isinstance(result, BadSampleError)]
        if bad and not self._skip_bad:
            raise bad[0]
        good = [i for i, result in enumerate(results) if not isinstance(result, BadSampleError)]
        shaped = [results[i] for i in good]
        positions = [job.start + i for i in good]
        return PlainRows(self._plain(shaped), positions, {array.dtype.name for array in shaped})

    def read_row(self, job: ShardJob, row_id: str) -> Array:
        """Plain data of one row of a shard, (1, *input_shape), read from the source."""
        try:
            position = self._row_ids[job.split].index(row_id, job.start, job.stop)
        except ValueError:
            raise DeliveryError(
                f"{job.name} holds rows that are not of this delivery: remove it and call again"
            ) from None
        split = self._source.splits[job.split]
        shaped = read_sample(split, int(self._orders[job.split][position]), self._preparation)
        if isinstance(shaped, BadSampleError):
            raise shaped
        return self._plain([shaped])

    def morphed(self, rows: PlainRows) -> Array:
        """Morphed rows before they are encoded, (b, elements)."""
        return unroll(self._key.morphing.morph(rows.plain))

    def _shard(self, name: str, values: npt.NDArray[Any], positions: list[int], dtypes: set[str]) -> Shard:
        split = self._source.splits[name]
        indices = self._orders[name][positions]
        return Shard(
            values=values,
            labels=None if split.labels is None else split.labels[indices],
            row_ids=[self._row_ids[name][position] for position in positions],
            extra={
                column: kept_values(split.extra[column], indices.tolist(), kind)
                for column, kind in self._kept.items()
            },
            source_dtype=common_dtype(tuple(dtypes)) if dtypes else None,
        )

    def _read_all(self, split: Split, indices: list[int]) -> list[Any]:
        def read(index: int) -> npt.NDArray[Any] | BadSampleError:
            return read_sample(split, index, self._preparation)

        if self._source.decodes and self._decoders is not None:
            return list(self._decoders.map(read, indices))
        return [read(index) for index in indices]

    def _plain(self, shaped: list[npt.NDArray[Any]]) -> Array:
        if not shaped:
            return np.empty((0, *self.input_shape), np.float32)
        if len({array.dtype for array in shaped}) == 1:
            stacked = np.empty((len(shaped), *self.input_shape), shaped[0].dtype)  # in row-major order
            return self._preparation.plain(np.stack(shaped, out=stacked))
        return np.concatenate([self._preparation.plain(array[np.newaxis]) for array in shaped])


def read_sample(split: Split, index: int, preparation: Preparation) -> npt.NDArray[Any] | BadSampleError:
    """A sample in the layer's shape, or why it cannot be used."""
    try:
        return shaped_sample(split, index, preparation)
    except BadSampleError as error:
        return error
