"""Large products shared out: one thread for each processor, and each with its products to itself.

NumPy's linear algebra has threads of its own, which wait for each other in every product: the longer, the
busier the machine is, and the smaller the product. Where there is enough to share out, threads that never
wait for each other are quicker, and the library is kept to one thread of its own meanwhile.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

from mole.scheme.shapes import Array

STRIP = 256  # what is changed at once: a few megabytes, which stay near the processor
_LIMITING = Lock()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def single_products(threads: int, name: str = "") -> Iterator[Executor]:
    """So many threads, of which each multiplies by itself.

    The limit on the library holds for the whole process. Whoever comes while another has set it leaves it
    as it is: two who put back what they found could leave it set for ever.
    """
    is_free = _LIMITING.acquire(blocking=False)
    try:
        limit = _libraries().limit(limits=1) if is_free else nullcontext()
        with limit, ThreadPoolExecutor(threads, thread_name_prefix=name) as pool:
            yield pool
    finally:
        if is_free:
            _LIMITING.release()


@contextmanager
def shared_out(strip: int = STRIP) -> Iterator[Callable[[Callable[[int], None], int, int], None]]:
    """Threads that share out the strips from a start to a stop."""

    def share(work: Callable[[int], None], start: int, stop: int) -> None:
        strips = range(start, stop, strip)
        if len(strips) == 1:  # a thread would take longer to begin than a small core to be made
            work(start)
            return
        for _ in pool.map(work, strips):
            pass

    with single_products(processors()) as pool:
        yield share


def product(left: Array, right: Array) -> Array:
    """The product of two square matrices, in strips."""
    result = np.empty_like(right)

    def multiply(at: int) -> None:
        np.matmul(left[at : at + STRIP], right, out=result[at : at + STRIP])

    with shared_out() as share:
        share(multiply, 0, len(left))
    return result


@cache
def _libraries() -> ThreadpoolController:
    """NumPy's linear algebra, found once."""
    return ThreadpoolController()
