"""The engine for one machine: every processor makes a shard of its own, and others write what is made.

Making a shard keeps a processor busy; writing one waits for a disk or a network, so that threads of their
own do it. What a shard is made in is used again for another one as soon as it is written: there is room
for two shards a processor, and whoever finds none waits until a shard is written.
"""

from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import LifoQueue
from typing import Any

import numpy.typing as npt

from mole.exchange.shards import Encoding, Shard
from mole.provider.plan import ShardJob
from mole.provider.shard_maker import ShardMaker
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

    def make(self, job: ShardJob) -> "Future[None]":
        """Make a shard, and let it be written."""
        found = self._rooms.get()
        try:
            room = self._maker.room(self._jobs, self._encoding) if found is None else found
            shard = self._maker.make(job, self._encoding, room)
            return self._writers.submit(self._write, job, shard, room)
        except BaseException:
            self._rooms.put(found)  # others wait for it
            raise

    def close(self) -> None:
        """Wait for what is being written, and leave what is not."""
        self._writers.shutdown(cancel_futures=True)

    def _write(self, job: ShardJob, shard: Shard, room: npt.NDArray[Any]) -> None:
        try:
            self._maker.put(job, shard, self._store)
        finally:
            self._rooms.put(room)


def write_here(
    maker: ShardMaker, jobs: Sequence[ShardJob], encoding: Encoding, store: Store
) -> Generator[int, None, None]:
    """Write shards on this machine; gives the rows of each as soon as it is written."""
    workers = min(processors(), MAX_WORKERS)
    engine = LocalEngine(maker, jobs, encoding, store, workers)
    try:
        with single_products(workers, "shard") as pool:
            try:
                for job, made in [(job, pool.submit(engine.make, job)) for job in jobs]:
                    made.result().result()
                    yield job.rows
            except BaseException:
                maker.stop()
                pool.shutdown(cancel_futures=True)
                raise
    finally:
        engine.close()
