"""What a process and all that descend from it take: processor time, and memory of their own."""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

PROC = Path("/proc")


def family(process: int) -> list[Path]:
    """Folders of /proc of a process and of all that descend from it."""
    children: dict[int, list[int]] = {}
    for status in PROC.glob("[0-9]*/stat"):
        if fields := _fields(status):
            children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = [process]
    for one in found:  # grows meanwhile
        found += children.get(one, [])
    return [PROC / str(one) for one in found]


def processor_seconds(process: int) -> float:
    """What its family has had of the processors, with members that have ended."""
    ticks = sum(sum(map(int, _fields(one / "stat")[11:15])) for one in family(process))
    return ticks / os.sysconf("SC_CLK_TCK")


class MemoryWatch(threading.Thread):
    """Samples how much memory the family of another process has of its own."""

    def __init__(self, process: int, pause: float = 0.05) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._process, self._pause, self._done = process, pause, threading.Event()

    def run(self) -> None:
        """Sample until the context ends."""
        while not self._done.wait(self._pause):
            self.most = max(self.most, sum(map(_own_memory, family(self._process))))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self.join()


def _own_memory(process: Path) -> int:
    """Bytes that no file backs: pages of mapped files are the system's to take back."""
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    kinds = ("RssAnon", "RssShmem")
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(kinds))


def _fields(status: Path) -> list[str]:
    """The fields of a file `stat` after the name; none if the process has ended."""
    try:
        return status.read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []
