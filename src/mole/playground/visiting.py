"""Opens the playground: a port on loopback, a server on it, and a browser that is told the address.

The address holds the token. It never stands on a command line, which every user of a machine can read: the
browser gets a file that only its owner can read, and that leads to the page.
"""

import html
import os
import signal
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from mole.errors import FileError
from mole.playground.gate import LOCAL_NAMES, Address
from mole.playground.local_site import site
from mole.playground.stock import Stock
from mole.scheme.sharing_out import processors, single_products
from mole.storage.atomic import reason_of

WAITS = 2  # seconds for answers that are under way at the end
MOST_AT_ONCE = 64  # connections
DOOR = """<!doctype html><meta charset="utf-8"><title>The playground</title>
<meta http-equiv="refresh" content="0; url={url}"><a href="{url}">The playground</a>
"""


def serve(port: int, opened: Callable[[str], None]) -> None:
    """Serve the playground until it is interrupted.

    Args:
        port: which one, or 0 for any that is free.
        opened: called with its address, once it can be asked.

    Raises:
        FileError: if the port cannot be had.
        KeyboardInterrupt: at Ctrl-C or a signal to end, when everything has ended.
    """
    listening = _listen(port)
    with listening, single_products(processors(), "playground") as pool:
        address, stock = Address(listening.getsockname()[1]), Stock()
        config = uvicorn.Config(
            site(address, stock, pool, lambda: opened(address.url)),
            access_log=False,  # it would show the token
            log_config=None,
            log_level="critical",
            server_header=False,
            http="h11",
            ws="none",
            limit_concurrency=MOST_AT_ONCE,
            timeout_graceful_shutdown=WAITS,
        )
        with _ended_as_by_keyboard():
            uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def door() -> Iterator[Callable[[str], None]]:
    """What opens a browser at an address, by way of a file that is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="mole-playground-") as folder:  # nobody else may look into it

        def show(url: str) -> None:
            file = Path(folder) / "open.html"
            file.write_text(DOOR.format(url=html.escape(url)), encoding="utf-8")
            try:
                webbrowser.open(file.as_uri())
            except webbrowser.Error:
                return  # the address was printed

        yield show


@contextmanager
def _ended_as_by_keyboard() -> Iterator[None]:
    """Let a signal to end be the same as Ctrl-C, so that nothing is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # elsewhere this would let two programs share a port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOCAL_NAMES[0], port))
        listening.listen(MOST_AT_ONCE)  # who comes before the server is there waits, and is not refused
    except OSError as error:
        listening.close()
        raise FileError(
            f"port {port} of this machine cannot be had: {reason_of(error)}; choose another"
        ) from None
    return listening
