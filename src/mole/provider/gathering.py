"""Requests that are under way, and their answers: no answer is lost because another one does not come."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mole.scheme.shapes import Array

Probabilities = npt.NDArray[np.float32]
Arrived = Callable[[int, Probabilities], None]
"""Told of the answers to one request: the place of its first image, and the probabilities."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Morphed rows that go as one request, under one id however often they are sent.

    Attributes:
        start: place of the first among all that were asked about.
        rows: what is sent.
        id: the request's.
    """

    start: int
    rows: Array
    id: str


def gather(
    batches: Sequence[Batch],
    waiting: Sequence["Future[Probabilities]"],
    take: Callable[[Batch, Probabilities], None],
    stop: threading.Event,
) -> None:
    """Give the answer to each request to `take`, in their order.

    Where one fails, `stop` is set, those that have not left are called off, and the attempts under way are
    waited for.
    """
    taken = 0
    try:
        for batch, future in zip(batches, waiting, strict=True):
            take(batch, future.result())
            taken += 1
    except BaseException:
        stop.set()
        under_way = [not future.cancel() for future in waiting]
        for batch, future, has_left in [*zip(batches, waiting, under_way, strict=True)][taken:]:
            if has_left and future.exception() is None:
                take(batch, future.result())
        raise
