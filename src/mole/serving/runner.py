"""Runs the network for all requests: some at a time, those that wait perhaps in one batch.

Reading a request, checking and computing all happen on threads, so that whoever listens never waits. With
`batch_rows` a thread takes every request that waits when it becomes free, up to so many rows: nobody waits
for company, so an idle server answers as quickly as without.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mole.protection.onnx_session import OnnxSession
from mole.serving.checked_requests import RefusedError

T = TypeVar("T")
Rows = npt.NDArray[np.float32]
MOST_WAITING = 256  # requests; more are told to come again


class _Waiting(NamedTuple):
    rows: Rows
    answer: "asyncio.Future[Rows]"


class Runner:
    """A network at work.

    Attributes:
        working: requests that are being answered, or wait.
        batches: how often the network ran.
    """

    def __init__(self, session: OnnxSession, *, threads: int, batch_rows: int = 0) -> None:
        """Make threads.

        Args:
            session: the network.
            threads: how many run at a time.
            batch_rows: put requests that wait together, up to so many rows; 0 for each on its own.
        """
        self.working = self.batches = 0
        self._session, self._batch_rows, self._free = session, batch_rows, threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="network")
        self._readers = ThreadPoolExecutor(threads, thread_name_prefix="reader")
        self._queue: deque[_Waiting] = deque()

    def enter(self) -> None:
        """Count a request that came.

        Raises:
            RefusedError: if too many are there already.
        """
        if self.working >= MOST_WAITING:
            raise RefusedError("busy", f"{self.working} requests are waiting already: send it again later")
        self.working += 1

    def leave(self) -> None:
        """Count a request that was answered."""
        self.working -= 1

    async def read(self, work: Callable[[], T]) -> T:
        """Do something that takes time beside the network."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def __call__(self, rows: Rows) -> Rows:
        """What the network gives for rows."""
        loop = asyncio.get_running_loop()
        if not self._batch_rows:
            self.batches += 1
            return await loop.run_in_executor(self._threads, self._session, rows)
        answer: asyncio.Future[Rows] = loop.create_future()
        self._queue.append(_Waiting(rows, answer))
        self._start()
        return await answer

    def close(self) -> None:
        """End the threads, once what they do is done."""
        self._threads.shutdown()
        self._readers.shutdown()

    def _start(self) -> None:
        """Give a free thread what waits."""
        while self._free and self._queue:
            batch = [self._queue.popleft()]
            size = len(batch[0].rows)
            while self._queue and size + len(self._queue[0].rows) <= self._batch_rows:
                batch.append(self._queue.popleft())
                size += len(batch[-1].rows)
            self._free -= 1
            self.batches += 1
            work = asyncio.get_running_loop().run_in_executor(
                self._threads, _together, self._session, batch
            )
            work.add_done_callback(lambda done, batch=batch: self._finish(done, batch))  # type: ignore[misc]

    def _finish(self, done: "asyncio.Future[list[Rows]]", batch: list[_Waiting]) -> None:
        self._free += 1
        error = done.exception()
        for place, waiting in enumerate(batch):
            if waiting.answer.done():
                continue  # whoever asked has gone
            if error is None:
                waiting.answer.set_result(done.result()[place])
            else:
                waiting.answer.set_exception(error)
        self._start()


def _together(session: OnnxSession, batch: list[_Waiting]) -> list[Rows]:
    """Answers for several requests from one run."""
    if len(batch) == 1:
        return [session(batch[0].rows)]
    found = session(np.concatenate([waiting.rows for waiting in batch]))
    ends = np.cumsum([len(waiting.rows) for waiting in batch])
    return np.split(found, ends[:-1])
