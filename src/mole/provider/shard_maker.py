"""One shard: read, prepare, morph, encode, write. Every engine does this same work."""

from concurrent.futures import Executor
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.clipping import Clipping
from mole.exchange.shards import Encoding, Shard, common_dtype, write_shard
from mole.provider.image_views import with_views
from mole.provider.keys import MorphKey
from mole.provider.plan import Plan, ShardJob, kept_values
from mole.provider.row_numbers import RowNumbers
from mole.scheme.shapes import Array, element_count, unroll
from mole.sources.preparation import PlainSamples
from mole.sources.source import BadSampleError, Source, Split
from mole.storage.stores import Store

PIECE_BYTES = 1 << 24  # of 32-bit values, worked on at a time


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
            name: RowNumbers(key, plan.delivery_id, name, plan.most_rows(name), plan.views_of(name))
            for name in plan.sizes
        }
        self._preparations = {
            name: with_views(
                plan.preparation, key, plan.delivery_id, name, samples=size, views=plan.views_of(name)
            )
            for name, size in plan.sizes.items()
        }
        self._source = source
        self._input_shape = plan.input_shape
        self._decoders = decoders if source.decodes else None
        self._stopped = Event()

    def write(self, job: ShardJob, encoding: Encoding, store: Store) -> None:
        """Make a shard and write it."""
        shard = self.make(job, encoding)
        store.make(job.name, lambda path: write_shard(shard, self._input_shape, path))

    def stop(self) -> None:
        """Let shards that are being made end soon, without being written: somebody wants to leave."""
        self._stopped.set()

    def make(self, job: ShardJob, encoding: Encoding) -> Shard:
        """A shard, piece by piece: small arrays are used again where large ones would be new each time."""
        elements = element_count(self._input_shape)
        values = np.empty((job.rows, elements), encoding.dtype)
        positions: list[int] = []
        dtypes: set[str] = set()
        clipped = Clipping()
        for piece in job.pieces(max(1, PIECE_BYTES // (4 * elements))):
            if self._stopped.is_set():
                raise DeliveryError(f"{job.name} was not finished: call again to resume")
            rows = self.read(piece)
            filled = slice(len(positions), len(positions) + len(rows.plain))
            morphed = self.morphed(rows.plain)
            values[filled] = encoding.encode(morphed)
            clipped += Clipping.of(morphed, encoding)
            positions += [piece.start + place for place in rows.places]
            dtypes |= rows.source_dtypes
        shard = self._shard(job.split, values[: len(positions)], positions, dtypes)
        return shard._replace(metadata={**encoding.metadata(), **clipped.metadata()})

    def read(self, job: ShardJob) -> PlainSamples:
        """Plain data of a shard's rows, in their secret order; without bad samples, if they are skipped."""
        split, numbers = self._source.splits[job.split], self.rows[job.split].order[job.start : job.stop]
        return self._preparations[job.split].read_many(
            split, numbers.tolist(), skip_bad=self.plan.skip_bad, workers=self._decoders
        )

    def read_row(self, job: ShardJob, row_id: str) -> Array:
        """Plain data of one row of a shard, (1, *shape), read from the source."""
        numbers = self.rows[job.split]
        try:
            position = numbers.ids.index(row_id, job.start, job.stop)
        except ValueError:
            raise DeliveryError(
                f"{job.name} holds rows that are not of this delivery: remove it and call again"
            ) from None
        split, number = self._source.splits[job.split], int(numbers.order[position])
        return self._preparations[job.split].read_many(split, [number], skip_bad=False).plain

    def morphed(self, plain: Array) -> Array:
        """Morphed rows before they are encoded, (b, elements), from plain data, (b, *shape)."""
        return unroll(self.key.morphing.morph(plain))

    def _shard(self, name: str, values: npt.NDArray[Any], positions: list[int], dtypes: set[str]) -> Shard:
        split, numbers = self._source.splits[name], self.rows[name]
        samples = numbers.order[positions] // numbers.views
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


def why_left_out(plan: Plan, split: Split, index: int) -> BadSampleError:
    """Why a sample that was left out cannot be used, found out by reading it once more."""
    try:
        plan.preparation.read(split, index)
    except BadSampleError as error:
        return error
    return BadSampleError(split.name_of(index), "it could not be read when it was needed")
