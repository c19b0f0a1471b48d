"""One shard: read, prepare, morph, encode, write. Every engine does this same work."""

from collections.abc import Sequence
from concurrent.futures import Executor
from threading import Event, local
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.clipping import Clipping
from mole.exchange.shards import Encoding, Shard, common_dtype, write_shard
from mole.provider.image_views import with_views
from mole.provider.keys import MorphKey
from mole.provider.plan import Plan, ShardJob, kept_values
from mole.provider.protector import Protector
from mole.provider.row_numbers import RowNumbers
from mole.scheme.block_product import Product, multiply
from mole.scheme.shapes import Array, element_count, unroll
from mole.sources.inspection import Problem
from mole.sources.plain_samples import PlainSamples, read_many
from mole.sources.source import BadSampleError, Source, Split
from mole.storage.stores import Store

PIECE_BYTES = 1 << 24  # of 32-bit values, worked on at a time


class Piece(NamedTuple):
    """What is known of a piece of a shard when its values are made.

    Attributes:
        positions: which rows of the split they are; bad samples are left out.
        source_dtypes: the number types that the samples had.
        clipped: what 8 bits cut off of them.
    """

    positions: list[int]
    source_dtypes: set[str]
    clipped: Clipping


class ShardMaker:
    """Makes the shards of one delivery.

    Attributes:
        plan: what the delivery is made from.
        key: the key that morphs it.
        rows: the row numbers of each split.
    """

    def __init__(
        self,
        plan: Plan,
        source: Source,
        key: MorphKey,
        *,
        decoders: Executor | None = None,
        product: Product = multiply,
        protector: Protector | None = None,
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
        self._rooms = local()
        self._product = product
        self._protector = protector

    def write(
        self, job: ShardJob, encoding: Encoding, store: Store, room: npt.NDArray[Any] | None = None
    ) -> None:
        """Make a shard, in `room` if there is some, and write it."""
        self.put(job, self.make(job, encoding, room), store)

    def put(self, job: ShardJob, shard: Shard, store: Store) -> None:
        """Write a shard that is made."""
        store.make(job.name, lambda path: write_shard(shard, self._input_shape, path))

    def stop(self) -> None:
        """Let shards that are being made end soon, without being written: somebody wants to leave."""
        self._stopped.set()

    def room(self, jobs: Sequence[ShardJob], encoding: Encoding) -> npt.NDArray[Any]:
        """Room for the values of any one of these shards, as `make` takes it."""
        return np.empty((max(job.rows for job in jobs), element_count(self._input_shape)), encoding.dtype)

    def make(self, job: ShardJob, encoding: Encoding, room: npt.NDArray[Any] | None = None) -> Shard:
        """A shard, piece by piece: small arrays are used again where large ones would be new each time.

        Its values lie in `room`, if there is some, until that is used again.
        """
        values = self.room([job], encoding) if room is None else room
        made = [self.make_piece(job, piece, encoding, values) for piece in self.pieces(job)]
        return self.joined(job, made, encoding, values)

    def pieces(self, job: ShardJob) -> list[ShardJob]:
        """The pieces of a shard, in order; several threads may make them at once."""
        shapes = (self._input_shape, self.plan.preparation.input_shape)
        return [*job.pieces(max(1, PIECE_BYTES // (4 * max(map(element_count, shapes)))))]

    def make_piece(
        self, job: ShardJob, piece: ShardJob, encoding: Encoding, room: npt.NDArray[Any]
    ) -> Piece:
        """Make the values of a piece, in its place in the room of the whole shard."""
        if self._stopped.is_set():
            raise DeliveryError(f"{job.name} was not finished: call again to resume")
        plain, morphed = self._piece_rooms(piece.rows)
        rows = self._protected(job.split, self.read(piece, plain))
        start = piece.start - job.start
        filled = room[start : start + len(rows.plain)]
        made = filled if filled.dtype == rows.plain.dtype else morphed[: len(filled)]
        self.key.morphing.morph(rows.plain, out=made, product=self._product, threads=1)
        clipped = Clipping()
        if made is not filled:
            clipped = Clipping.of(made, encoding)
            encoding.encode(made, out=filled)
        return Piece([piece.start + place for place in rows.places], rows.source_dtypes, clipped)

    def joined(
        self, job: ShardJob, made: Sequence[Piece], encoding: Encoding, room: npt.NDArray[Any]
    ) -> Shard:
        """The shard whose pieces are made."""
        positions: list[int] = []
        for piece, planned in zip(made, self.pieces(job), strict=True):
            start, count = planned.start - job.start, len(piece.positions)
            if start > len(positions):  # bad samples before it were left out: move up
                room[len(positions) : len(positions) + count] = room[start : start + count]
            positions += piece.positions
        dtypes = set[str]().union(*(piece.source_dtypes for piece in made))
        shard = self._shard(job.split, room[: len(positions)], positions, dtypes)
        clipped = sum((piece.clipped for piece in made), Clipping())
        return shard._replace(metadata={**encoding.metadata(), **clipped.metadata()})

    def read(self, job: ShardJob, room: Array | None = None) -> PlainSamples:
        """Plain data of a shard's rows, in their secret order; without bad samples, if they are skipped.

        It lies in `room`, if there is some, until that is used again.
        """
        split, numbers = self._source.splits[job.split], self.rows[job.split].order[job.start : job.stop]
        try:
            return read_many(
                self._preparations[job.split], split, numbers.tolist(),
                skip_bad=self.plan.skip_bad, workers=self._decoders, out=room,
            )  # fmt: skip
        except BadSampleError as error:  # its header was good
            raise Problem(error, 1, [error.name]).error() from None

    def _protected(self, split: str, rows: PlainSamples) -> PlainSamples:
        """What may leave of the images, where they are protected: no trace of their number type either."""
        if self._protector is None:
            return rows
        return PlainSamples(self._protector.rows(rows.plain, split), rows.places, {"float32"})

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
        return read_many(self._preparations[job.split], split, [number], skip_bad=False).plain

    def morphed(self, plain: Array) -> Array:
        """Morphed rows before they are encoded, (b, elements), from plain data, (b, *shape)."""
        return unroll(self.key.morphing.morph(plain, product=self._product))

    def _piece_rooms(self, rows: int) -> tuple[Array, Array]:
        """Room for the plain and the morphed data of a piece; each thread has its own, and keeps it."""
        found: tuple[Array, Array] | None = getattr(self._rooms, "found", None)
        if found is None or len(found[0]) < rows:
            plain = np.empty((rows, *self.plan.preparation.input_shape), np.float32)
            found = plain, np.empty((rows, element_count(self._input_shape)), np.float32)
            self._rooms.found = found
        return found

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
