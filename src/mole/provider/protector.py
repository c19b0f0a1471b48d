"""Turns images into protected rows: front, clip, fresh noise, grid; for several threads at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue
from threading import Lock
from types import TracebackType
from typing import Self

import numpy as np

from mole.protection.channel import FreshNoise, clip, release
from mole.protection.front_file import Front
from mole.protection.front_runner import FrontRunner
from mole.protection.terms import Protection
from mole.scheme.shapes import Array


class Protector:
    """A front at work under some terms; a context manager, because its processes end with it.

    Each thread that asks has a process of the front to itself, with one thread: they never wait for each
    other. Noise is drawn anew for every call, and kept nowhere.

    Attributes:
        not_numbers: how many values of the front were no finite numbers, and became zero.
    """

    def __init__(self, front: Front, terms: Protection) -> None:
        self.not_numbers = 0
        self._front, self._terms = front, terms
        self._idle: LifoQueue[FrontRunner] = LifoQueue()
        self._all: list[FrontRunner] = []
        self._changing = Lock()

    def rows(self, images: Array, split: str) -> Array:
        """Protected rows of images, (n, *input_shape) to (n, *features): what may leave."""
        with self._runner() as run:
            features = run(images)
        certificate = self._terms.certificates[split]
        clipped, not_numbers = clip(features, certificate.clip)
        with self._changing:
            self.not_numbers += not_numbers
        noisy = release(clipped, certificate, FreshNoise())
        return noisy.astype(np.float32).reshape(len(images), *self._front.features)

    def close(self) -> None:
        """End all processes."""
        for runner in self._all:
            runner.close()

    @contextmanager
    def _runner(self) -> Iterator[FrontRunner]:
        try:
            runner = self._idle.get_nowait()
        except Empty:
            runner = FrontRunner(self._front, threads=1)
            with self._changing:
                self._all.append(runner)
        try:
            yield runner
        finally:
            self._idle.put(runner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
