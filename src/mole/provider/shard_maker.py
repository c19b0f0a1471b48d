"""One shard: read, prepare, morph, encode, write. Every engine does this; the local one is here, too."""

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from mole.errors import DeliveryError
from mole.exchange.encoding import Encoding
from mole.exchange.shards import Shard, common_dtype, write_shard
from mole.provider.kept_columns import kept_values
from mole.provider.keys import MorphKey
from mole.provider.plan import Plan, ShardJob
from mole.provider.row_numbers import RowNumbers
from mole.scheme.shapes import Array, element_count, unroll
from mole.sources.source import BadSampleError, Source, Split
from mole.storage.stores import Store

PIECE_BYTES = 1 << 24  # of 32-bit values, worked on at a time
MAX_WORKERS = 16  # each holds about four times a shard in memory


class PlainRows(NamedTuple):
    """Plain data of some rows, their positions in the split, and the number types of their samples."""

    plain: Array
    positions: list[int]
    source_dtypes: set[str]


class ShardMaker:
    """Makes the shards of one delivery.

    Attributes:
        plan: what the delivery is made from.
        key: the key that morphs it.
        rows: the row numbers of each split.
    """

    def __init__(
        self, plan: Plan, source: Source, key: MorphKey, *, decoders: Executor | None = None
    ) -> None:
        self.plan = plan
        self.key = key
        self.rows = {
            name: RowNumbers(key, plan.delivery_id, name, size) for name, size in plan.sizes.items()
        }
        self._source = source
        self._input_shape = plan.layer.input_shape
        self._decoders = decoders if source.decodes else None

    def write(self, job: ShardJob, encoding: Encoding, store: Store) -> None:
        """Make a shard and write it."""
        shard = self.make(job, encoding)
        store.make(job.name, lambda path: write_shard(shard, self._input_shape, path))

    def make(self, job: ShardJob, encoding: Encoding) -> Shard:
        """A shard, piece by piece: small arrays are used again where large ones would be new each time."""
        elements = element_count(self._input_shape)
        values = np.empty((job.rows, elements), encoding.dtype)
        positions: list[int] = []
        dtypes: set[str] = set()
        for piece in job.pieces(max(1, PIECE_BYTES // (4 * elements))):
            rows = self.read(piece)
            filled = slice(len(positions), len(positions) + len(rows.plain))
            values[filled] = encoding.encode(self.morphed(rows.plain))
            positions += rows.positions
            dtypes |= rows.source_dtypes
        return self._shard(job.split, values[: len(positions)], positions, dtypes)

    def read(self, job: ShardJob) -> PlainRows:
        """Plain data of a shard's rows, in their secret order; without bad samples, if they are skipped."""
        samples = self._read_all(job.split, self.rows[job.split].order[job.start : job.stop].tolist())
        good = {
            position: sample for position, sample in enumerate(samples, job.start) if sample is not None
        }
        dtypes = {sample.dtype.name for sample in good.values()}
        return PlainRows(self._plain([*good.values()]), [*good], dtypes)

    def read_row(self, job: ShardJob, row_id: str) -> Array:
        """Plain data of one row of a shard, (1, *input_shape), read from the source."""
        numbers = self.rows[job.split]
        try:
            position = numbers.ids.index(row_id, job.start, job.stop)
        except ValueError:
            raise DeliveryError(
                f"{job.name} holds rows that are not of this delivery: remove it and call again"
            ) from None
        split = self._source.splits[job.split]
        return self._plain([self.plan.preparation.read(split, int(numbers.order[position]))])

    def morphed(self, plain: Array) -> Array:
        """Morphed rows before they are encoded, (b, elements), from plain data, (b, *input_shape)."""
        return unroll(self.key.morphing.morph(plain))

    def _shard(self, name: str, values: npt.NDArray[Any], positions: list[int], dtypes: set[str]) -> Shard:
        split, numbers = self._source.splits[name], self.rows[name]
        samples = numbers.order[positions]
        return Shard(
            values=values,
            labels=None if split.labels is None else split.labels[samples],
            row_ids=[numbers.ids[position] for position in positions],
            extra={
                column: kept_values(split.extra[column], samples.tolist(), kind)
                for column, kind in self.plan.kept.items()
            },
            source_dtype=common_dtype(tuple(dtypes)) if dtypes else None,
        )

    def _read_all(self, name: str, indices: list[int]) -> list[npt.NDArray[Any] | None]:
        split = self._source.splits[name]

        def read(index: int) -> npt.NDArray[Any] | None:
            try:
                return self.plan.preparation.read(split, index)
            except BadSampleError:
                if self.plan.skip_bad:
                    return None
                raise

        several: Callable[..., Any] = map if self._decoders is None else self._decoders.map
        return list(several(read, indices))

    def _plain(self, shaped: list[npt.NDArray[Any]]) -> Array:
        preparation = self.plan.preparation
        if not shaped:
            return np.empty((0, *self._input_shape), np.float32)
        if len({array.dtype for array in shaped}) == 1:
            stacked = np.empty((len(shaped), *self._input_shape), shaped[0].dtype)  # in row-major order
            return preparation.plain(np.stack(shaped, out=stacked))
        return np.concatenate([preparation.plain(array[np.newaxis]) for array in shaped])


def write_here(
    maker: ShardMaker, jobs: Sequence[ShardJob], encoding: Encoding, store: Store
) -> Generator[int, None, None]:
    """The engine for one machine: every core makes a shard of its own, from reading to writing.

    A product on one core leaves the others free for the next shards, so none waits for one that writes. It
    gives the rows of each shard as soon as that is written.
    """
    workers = min(os.cpu_count() or 1, MAX_WORKERS)
    with threadpool_limits(1), ThreadPoolExecutor(workers, thread_name_prefix="shard") as pool:
        try:
            writing = [(job, pool.submit(maker.write, job, encoding, store)) for job in jobs]
            for job, future in writing:
                future.result()
                yield job.rows
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def why_left_out(plan: Plan, split: Split, index: int) -> BadSampleError:
    """Why a sample that was left out cannot be used, found out by reading it once more."""
    try:
        plan.preparation.read(split, index)
    except BadSampleError as error:
        return error
    return BadSampleError(split.name_of(index), "it could not be read when it was needed")
