"""Inference servers for tests: the command as a process of its own, on ports that are free."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from command import MOLE


class Running(NamedTuple):
    """A server that answers, and where."""

    process: subprocess.Popen
    http: str
    grpc: str
    model: str


def start(file: Path, *options: object, port: int = 0, grpc_port: int = 0) -> Running:
    """A server, once it answers."""
    process = subprocess.Popen(
        [MOLE, "serve", file, "--port", str(port), "--grpc-port", str(grpc_port), "--json", "--quiet",
         *map(str, options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError(process.communicate()[1])
    return Running(process, **json.loads(line))


def stop(running: Running, number: int = signal.SIGTERM) -> tuple[int, str]:
    """How a server ended, and what it said on stderr."""
    running.process.send_signal(number)
    _, said = running.process.communicate(timeout=60)
    return running.process.returncode, said


@contextmanager
def serving(file: Path, *options: object) -> Iterator[Running]:
    running = start(file, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            stop(running, signal.SIGKILL)
