"""The engine for one machine: every core makes a shard of its own, from reading to writing.

A product on one core leaves the others free for the next shards, so nobody waits for a core that writes.
"""

import os
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import threadpool_limits

from mole.exchange.encoding import Encoding
from mole.provider.plan import ShardJob
from mole.provider.shard_maker import ShardMaker
from mole.storage.stores import Store

MAX_WORKERS = 16  # each holds about four times a shard in memory


def write_here(
    maker: ShardMaker, jobs: Sequence[ShardJob], encoding: Encoding, store: Store
) -> Generator[int, None, None]:
    """Write shards on this machine; gives the rows of each as soon as it is written."""
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
