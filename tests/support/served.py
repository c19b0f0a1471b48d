"""Inference servers for tests: the command as a process of its own, on ports that are free."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from command import MOLE


class Running(NamedTuple):
    """A server that answers, and where."""

    process: subprocess.Popen
    http: str
    grpc: str
    model: str


def free_ports(count: int) -> list[int]:
    """Ports that stay free until they are used: the system gives none below 32,768 to who asks for any.

    Each process looks among others first, so that tests that run at once do not find the same ones.
    """
    first, found = 20_000 + 10 * (os.getpid() % 1_100), []
    with ExitStack() as held:
        for port in range(first, 32_000):
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
            if len(found) == count:
                return found
    raise AssertionError(f"{count} ports are not free from {first} to 32,000")


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
