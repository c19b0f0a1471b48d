"""The engine for one machine: all processors make shards piece by piece, and others write what is made.

Making a piece keeps a processor busy; writing a shard waits for a disk or a network, so that threads of
their own do it. Pieces of one shard are made at once, so that it is complete soon. The last shards are made
in turns: they are complete together, so that each processor has one to write when nothing is left to make.
What a shard is made in is used again for another one as soon as it is written: there is room for two shards
a processor, and whoever finds none waits until a shard is written.
"""

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from queue import LifoQueue
from threading import Lock
from typing import Any

import numpy.typing as npt

from mole.exchange.shards import Encoding, Shard
from mole.provider.plan import ShardJob
from mole.provider.shard_maker import Piece, ShardMaker
from mole.scheme.sharing_out import processors, single_products
from mole.storage.stores import Store

MAX_WORKERS = 16  # each may have two shards in memory


class LocalEngine:
    """Makes and writes the shards of one delivery."""

    def __init__(
        self, maker: ShardMaker, jobs: Sequence[ShardJob], encoding: Encoding, store: Store, workers: int
    ) -> None:
        self._maker, self._jobs, self._encoding, self._store = maker, jobs, encoding, store
        self._writers = ThreadPoolExecutor(workers, thread_name_prefix="write")
        self._rooms: LifoQueue[npt.NDArray[Any] | None] = LifoQueue()  # None for one still to be made
        for _ in range(2 * workers):
            self._rooms.put(None)

    def room(self) -> npt.NDArray[Any]:
        """Room for a shard; waits until there is some."""
        found = self._rooms.get()
        return self._maker.room(self._jobs, self._encoding) if found is None else found

    def give_up(self) -> None:
        """Say that a shard never comes to be written: others wait for its room, and may make another."""
        self._rooms.put(None)

    def make_piece(self, job: ShardJob, piece: ShardJob, room: npt.NDArray[Any]) -> Piece:
        """Make a piece of a shard."""
        return self._maker.make_piece(job, piece, self._encoding, room)

    def write(self, job: ShardJob, made: Sequence[Piece], room: npt.NDArray[Any]) -> "Future[None]":
        """Let a shard be written whose pieces are made."""
        shard = self._maker.joined(job, made, self._encoding, room)
        return self._writers.submit(self._write, job, shard, room)

    def close(self) -> None:
        """Wait for what is being written, and leave what is not."""
        self._writers.shutdown(cancel_futures=True)

    def _write(self, job: ShardJob, shard: Shard, room: npt.NDArray[Any]) -> None:
        try:
            self._maker.put(job, shard, self._store)
        finally:
            self._rooms.put(room)


class ShardInTheMaking:
    """A shard whose pieces are made by several threads; whoever makes the last lets it be written."""

    def __init__(self, engine: LocalEngine, job: ShardJob, pieces: Sequence[ShardJob]):
        self._engine, self.job, self.pieces = engine, job, pieces
        self._lock = Lock()
        self._room: npt.NDArray[Any] | None = None
        self._made: dict[int, Piece] = {}
        self._writing: Future[None] | None = None
        self._tasks: list[Future[None]] = []

    def begin(self, index: int, pool: Executor) -> None:
        """Let a thread make a piece."""
        self._tasks.append(pool.submit(self._make, index, self.pieces[index]))

    def wait(self) -> None:
        """Wait until it is written; the first mistake in it is raised."""
        for task in self._tasks:
            task.result()
        if self._writing is not None:
            self._writing.result()

    def _make(self, index: int, piece: ShardJob) -> None:
        try:
            with self._lock:  # the other pieces need the same room
                if self._room is None:
                    self._room = self._engine.room()
                room = self._room
            made = self._engine.make_piece(self.job, piece, room)
            with self._lock:
                self._made[index] = made
                if len(self._made) == len(self.pieces):
                    in_order = [self._made[place] for place in range(len(self.pieces))]
                    self._writing = self._engine.write(self.job, in_order, room)
        except BaseException:
            self._engine.give_up()
            raise


def write_here(
    maker: ShardMaker, jobs: Sequence[ShardJob], encoding: Encoding, store: Store
) -> Generator[int, None, None]:
    """Write shards on this machine; gives the rows of each as soon as it is written."""
    workers = min(processors(), MAX_WORKERS)
    engine = LocalEngine(maker, jobs, encoding, store, workers)
    try:
        with single_products(workers, "shard") as pool:
            try:
                shards = [ShardInTheMaking(engine, job, maker.pieces(job)) for job in jobs]
                for shard, index in in_turns(shards, workers):
                    shard.begin(index, pool)
                for shard in shards:
                    shard.wait()
                    yield shard.job.rows
            except BaseException:
                maker.stop()
                pool.shutdown(cancel_futures=True)
                raise
    finally:
        engine.close()


def in_turns(shards: Sequence[ShardInTheMaking], at_once: int) -> Iterator[tuple[ShardInTheMaking, int]]:
    """Every piece of every shard: one shard after the other, but the last ones in turns."""
    last = shards[-at_once:]
    for shard in shards[: -len(last)] if last else ():
        yield from ((shard, index) for index in range(len(shard.pieces)))
    for index in range(max((len(shard.pieces) for shard in last), default=0)):
        yield from ((shard, index) for shard in last if index < len(shard.pieces))
