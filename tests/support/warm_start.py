"""Programs in processes of their own, without the seconds in which each would load PyTorch.

A server loads the large packages of others, once, and waits. For each program it forks: the child gets the
caller's folder, environment and streams, loads the package `mole` anew, and ends as any process ends. So a
child can be told from a process that began with nothing only by the clock.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

SERVER = """
import gc, json, os, runpy, select, signal, socket, sys
import numpy, pyarrow.parquet, torch, torch._dynamo, typer

assert not [name for name in sys.modules if name.split(".")[0] == "mole"]
gc.freeze()  # what is never looked at again is shared with every child
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
print("ready", flush=True)
while True:
    if sys.stdin in select.select([listening, sys.stdin], [], [])[0]:
        os._exit(0)  # whoever started it has gone
    caller, _ = listening.accept()
    request, streams, _, _ = socket.recv_fds(caller, 1 << 20, 3)
    child = os.fork()
    if not child:
        break
    for stream in streams:
        os.close(stream)
    caller.sendall(b"%d\\n" % child)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    caller.sendall(b"%d\\n" % status)
    caller.close()

for place, stream in enumerate(streams):
    os.dup2(stream, place)
    os.close(stream)
listening.close()
caller.close()
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the caller ignores Ctrl-C
program, arguments, folder, environment, mask = json.loads(request)
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
os.umask(mask)
sys.argv = arguments
if program is None:
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
else:
    sys.path[0] = os.path.dirname(sys.executable)  # as of an installed command
    exec(program)
"""

# Stands in for a program of a shell: `mole ...`, or `python file.py ...`.
STAND_IN = """#!{python} -IS
import json, os, socket, sys
program, arguments = {program!r}, sys.argv if {program!r} else sys.argv[1:]
mask = os.umask(0)
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([program, arguments, os.getcwd(), dict(os.environ), mask])
    socket.send_fds(server, [request.encode()], [0, 1, 2])
    pid, status = server.makefile().read().split()
sys.exit(int(status) if int(status) >= 0 else 128 - int(status))
"""
MOLE = "from mole.cli import main; main()"


class Ended(NamedTuple):
    """How a process ended, with what it said."""

    returncode: int
    stdout: str
    stderr: str


class WarmProcess:
    """A process that a server forked: what tests need of a `subprocess.Popen`."""

    def __init__(self, address: str, program: str, arguments: list[str], cwd: Path) -> None:
        self.returncode: int | None = None
        self._said: list[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115  (closed in ended)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(address)
        mask = os.umask(0)
        os.umask(mask)
        request = json.dumps([program, arguments, str(cwd), dict(os.environ), mask])
        with Path(os.devnull).open("rb") as nothing:
            streams = [file.fileno() for file in (nothing, *self._said)]
            socket.send_fds(self._server, [request.encode()], streams)
        self._answers = self._server.makefile()
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None and select.select([self._server], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        if self.returncode is None:
            self.returncode = int(self._answers.readline())
        return self.returncode

    def send_signal(self, sent: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sent)

    def ended(self) -> Ended:
        """How it ended, once it has."""
        code = self.wait()
        said = []
        for file in self._said:
            file.seek(0)
            said.append(file.read().decode())
            file.close()
        self._answers.close()
        self._server.close()
        return Ended(code, *said)


class WarmStart:
    """A server at work."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._address = str(folder / "socket")

    def begin(self, program: str, *arguments: object, cwd: Path) -> WarmProcess:
        """Begin a program, a text of Python, with arguments that it finds in `sys.argv`."""
        return WarmProcess(self._address, program, list(map(str, arguments)), cwd)

    def stand_ins(self, before: str = "") -> Path:
        """A folder for the front of PATH, whose `mole` and `python` are forked; `mole` does this before."""
        folder = self._folder / "bin"
        folder.mkdir(exist_ok=True)
        for name, program in (("mole", before + MOLE), ("python", None)):
            text = STAND_IN.format(python=sys.executable, program=program, address=self._address)
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        return folder


@contextlib.contextmanager
def warm_start() -> Iterator[WarmStart]:
    """Start a server, and end it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))  # a socket's name must be short
    command = [sys.executable, "-c", SERVER, str(folder / "socket")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield WarmStart(folder)
        finally:
            assert server.stdin is not None
            server.stdin.close()
            shutil.rmtree(folder, ignore_errors=True)
