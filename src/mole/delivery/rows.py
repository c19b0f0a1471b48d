"""One shard: read, prepare, morph, encode, write. The same function serves every engine."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.data.encoding import Encoding
from mole.data.preparation import Preparation
from mole.data.shards import Shard, shard_name, write_shard
from mole.data.source import BadSampleError, Source, Split
from mole.errors import ShapeError
from mole.files.store import Store
from mole.geometry import Array, Shape, element_count, unroll
from mole.keys import MorphKey

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
    """Plain data for a shard, with what travels along, and what could not be read."""

    job: ShardJob
    plain: Array
    positions: npt.NDArray[np.intp]
    bad: tuple[BadSampleError, ...]


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
        self._keep = tuple(keep)
        self._skip_bad = skip_bad
        self._decoders = decoders
        sizes = {name: len(split) for name, split in source.splits.items()}
        self.delivery_id = delivery_id
        self._orders = {name: key.row_order(delivery_id, name, size) for name, size in sizes.items()}
        self._row_ids = {name: key.row_ids(delivery_id, name, size) for name, size in sizes.items()}

    @property
    def input_shape(self) -> Shape:
        """Shape of a sample."""
        return self._preparation.input_shape

    def write(self, job: ShardJob, encoding: Encoding, store: Store) -> tuple[BadSampleError, ...]:
        """Make a shard and write it; returns the samples that were left out."""
        shard, bad = self.make(job, encoding)
        store.make(job.name, lambda path: write_shard(shard, self.input_shape, path))
        return bad

    def make(self, job: ShardJob, encoding: Encoding) -> tuple[Shard, tuple[BadSampleError, ...]]:
        """A shard, piece by piece: small arrays are used again where large ones would be new each time."""
        elements = element_count(self.input_shape)
        values = np.empty((job.rows, elements), encoding.dtype)
        positions: list[int] = []
        bad: list[BadSampleError] = []
        for piece in job.pieces(max(1, PIECE_BYTES // (4 * elements))):
            rows = self.read(piece)
            filled = slice(len(positions), len(positions) + len(rows.plain))
            values[filled] = encoding.encode(self.morphed(rows))
            positions += rows.positions.tolist()
            bad += rows.bad
        return self._shard(job.split, values[: len(positions)], positions), tuple(bad)

    def read(self, job: ShardJob) -> PlainRows:
        """Plain data of a shard's rows, in their secret order."""
        split = self._source.splits[job.split]
        indices = self._orders[job.split][job.start : job.stop].tolist()
        results = self._read_all(split, indices)
        bad = tuple(result for result in results if isinstance(result, BadSampleError))
        if bad and not self._skip_bad:
            raise bad[0]
        good = [i for i, result in enumerate(results) if not isinstance(result, BadSampleError)]
        shaped = [results[i] for i in good]
        return PlainRows(job, self._plain(shaped), np.array(good, dtype=np.intp) + job.start, bad)

    def morphed(self, rows: PlainRows) -> Array:
        """Morphed rows before they are encoded, (b, elements)."""
        return unroll(self._key.morphing.morph(rows.plain))

    def _shard(self, name: str, values: npt.NDArray[Any], positions: list[int]) -> Shard:
        split = self._source.splits[name]
        indices = self._orders[name][positions]
        return Shard(
            values=values,
            labels=None if split.labels is None else split.labels[indices],
            row_ids=[self._row_ids[name][position] for position in positions],
            extra={
                column: [_value(split.extra[column][index]) for index in indices.tolist()]
                for column in self._keep
            },
        )

    def _read_all(self, split: Split, indices: list[int]) -> list[Any]:
        def read(index: int) -> npt.NDArray[Any] | BadSampleError:
            try:
                return self._preparation.shape(split.read(index))
            except BadSampleError as error:
                return error
            except ShapeError as error:
                return BadSampleError(split.name_of(index), str(error))

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


def _value(cell: Any) -> Any:
    """A plain value of a column that may be an Arrow column."""
    return cell.as_py() if hasattr(cell, "as_py") else cell
