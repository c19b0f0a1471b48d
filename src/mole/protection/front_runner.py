"""Runs a front on images, in a process of its own that may take so much memory and so much time."""

import os
import subprocess
import sys
from threading import Timer
from types import TracebackType
from typing import Self

import numpy as np

from mole.errors import FileError, ShapeError
from mole.limits import MAX_ELEMENTS
from mole.protection.front_file import Front
from mole.protection.front_worker import read_array, write_array
from mole.scheme.shapes import Array, element_count

NUMBERS_AT_ONCE = 1 << 22  # of images or of their features, in one batch
KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT")  # what Python needs to start
SECONDS = 120.0  # for a batch; the first one includes opening the file


class FrontRunner:
    """A front at work; a context manager, because its process ends with it.

    The process gets neither the environment of this one, where passwords may stand, nor modules that lie
    in the folder where it is started.

        with FrontRunner(read_front(path)) as run:
            features = run(images)

    Attributes:
        front: what its file says.
    """

    def __init__(self, front: Front, *, threads: int | None = None, seconds: float = SECONDS) -> None:
        self.front = front
        self._seconds = seconds
        most = 2 * max(NUMBERS_AT_ONCE, MAX_ELEMENTS)
        arguments = [str(front.path), front.digest, str(threads or os.cpu_count() or 1), str(most)]
        self._process = subprocess.Popen(  # noqa: S603  (our own module, under our own Python)
            [sys.executable, "-P", "-m", "mole.protection.front_worker", *arguments],
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def __call__(self, images: Array) -> Array:
        """Features of images, (n, *input_shape) to (n, d); the clip removes what is no number.

        Raises:
            FileError: if the front dies, takes too long, or gives something else than it said.
        """
        if images.shape[1:] != self.front.input_shape:
            raise ShapeError(f"images of shape {images.shape} do not fit a front of {self.front}")
        numbers = max(element_count(self.front.input_shape), self.front.dimensions)
        at_once = max(1, NUMBERS_AT_ONCE // numbers)
        found = np.empty((len(images), self.front.dimensions), np.float32)
        for start in range(0, len(images), at_once):
            part = images[start : start + at_once]
            found[start : start + len(part)] = self._batch(part).reshape(len(part), -1)
        return found

    def _batch(self, part: Array) -> Array:
        timer = Timer(self._seconds, self._process.kill)
        timer.start()
        try:
            assert self._process.stdin is not None  # noqa: S101  (both are pipes)
            assert self._process.stdout is not None  # noqa: S101
            write_array(self._process.stdin, part)
            answer = read_array(self._process.stdout, len(part) * self.front.dimensions)
        except OSError:
            answer = None
        finally:
            is_late = not timer.is_alive()
            timer.cancel()
        if answer is None and is_late:
            raise FileError(f"{self.front.path} took longer than {self._seconds:.0f} s for one batch")
        if answer is None:
            raise FileError(f"{self.front.path} could not be run: ask its developer for another front")
        if answer.shape != (len(part), *self.front.features):
            raise FileError(
                f"{self.front.path} does not give the features that it says: it gave {answer.shape}"
            )
        return answer

    def close(self) -> None:
        """End its process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue  # it has died before
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
