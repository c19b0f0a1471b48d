"""The engine for one machine: while one shard is multiplied, the next is read and the last one written."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from mole.data.encoding import Encoding
from mole.data.shards import Shard, write_shard
from mole.data.source import BadSampleError
from mole.delivery.rows import PlainRows, ShardJob, ShardMaker
from mole.files.store import Store
from mole.geometry import Shape

Progress = Callable[[int, int], None]


def write_shards(
    maker: ShardMaker, jobs: list[ShardJob], encoding: Encoding, store: Store, progress: Progress
) -> tuple[BadSampleError, ...]:
    """Write every shard that is missing; returns the samples that were left out of them."""
    present = store.names()
    missing = [job for job in jobs if job.name not in present]
    total = sum(job.rows for job in jobs)
    done = total - sum(job.rows for job in missing)
    progress(done, total)
    skipped: list[BadSampleError] = []
    with ThreadPoolExecutor(1, thread_name_prefix="write") as writer:
        writing: Future[None] | None = None
        for rows in _read_ahead(maker, missing):
            shard = maker.morph(rows, encoding)
            if writing is not None:
                writing.result()
            writing = writer.submit(_write, store, rows.job.name, shard, maker.input_shape)
            skipped += rows.bad
            done += rows.job.rows
            progress(done, total)
        if writing is not None:
            writing.result()
    return tuple(skipped)


def _write(store: Store, name: str, shard: Shard, shape: Shape) -> None:
    store.write(name, write_shard(shard, shape))


def _read_ahead(maker: ShardMaker, jobs: list[ShardJob]) -> Iterator[PlainRows]:
    """Plain rows of each job, with the next one being read meanwhile."""
    with ThreadPoolExecutor(1, thread_name_prefix="read") as reader:
        ahead: Future[PlainRows] | None = None
        for job in jobs:
            current, ahead = ahead, reader.submit(maker.read, job)
            if current is not None:
                yield current.result()
        if ahead is not None:
            yield ahead.result()
