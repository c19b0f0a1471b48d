"""The engine for one machine: every core makes a shard of its own, from reading to writing.

A product on one core leaves the others free for the next shards, so nobody waits for a core that writes.
"""

import os
from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import threadpool_limits

from mole.exchange.encoding import Encoding
from mole.progress import Progress
from mole.provider.shard_maker import ShardJob, ShardMaker
from mole.storage.stores import Store

MAX_WORKERS = 16  # each holds about four times a shard in memory


def write_shards(
    maker: ShardMaker, jobs: list[ShardJob], encoding: Encoding, store: Store, progress: Progress
) -> None:
    """Write every shard that is missing."""
    present = store.names()
    missing = [job for job in jobs if job.name not in present]
    total = sum(job.rows for job in jobs)
    done = total - sum(job.rows for job in missing)
    progress(done, total)
    workers = min(os.cpu_count() or 1, MAX_WORKERS)
    with threadpool_limits(1), ThreadPoolExecutor(workers, thread_name_prefix="shard") as pool:
        try:
            writing = [(job, pool.submit(maker.write, job, encoding, store)) for job in missing]
            for job, future in writing:
                future.result()
                done += job.rows
                progress(done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
