"""`mole serve`: HTTP and gRPC for one network, from the first request to the last.

    serve(read_served(Path("model.onnx")), Listening(port=8080, grpc_port=8081))

Why this is a server of our own and not KServe's: that one (0.21, its Python server) listens on all
interfaces at both doors, has no TLS for gRPC, no token and no bound on what it reads over HTTP, lets
anybody unload the network, answers most malformed requests with 500, and cannot be told otherwise without
replacing its two servers and every endpoint; and it needs older versions of protobuf, pandas and psutil
than the rest of this project. What it is made of, uvicorn and grpc, is used here. Its clients are answered
all the same, and an exported network can be served by it, by Triton or by MLServer.

It listens on this machine alone, unless told otherwise, and then only with TLS and a token.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import uvicorn

from mole.errors import FileError, ParameterError
from mole.exchange.inference_messages import is_loopback
from mole.exchange.served_model import ServedFile
from mole.serving.grpc_door import grpc_door
from mole.serving.http_door import http_door
from mole.serving.inference import Inference
from mole.storage.atomic import reason_of

SECONDS_TO_FINISH = 20  # for requests that are being answered when the server is told to stop
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Listening:
    """Where a server listens, and what it asks for.

    Attributes:
        host: an address of this machine; one of its own needs TLS and a token.
        port, grpc_port: 0 for any that is free.
        certificate, private_key: PEM files for TLS; both or neither.
        token: what every request but those for health has to bring.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    grpc_port: int = 8081
    certificate: Path | None = None
    private_key: Path | None = None
    token: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.private_key is None):
            raise ParameterError("TLS needs a certificate and its private key: give both, or neither")
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isprintable()):
            raise ParameterError(f"a token has at least {SHORTEST_TOKEN} characters that can be seen")
        if not is_loopback(self.host) and (self.certificate is None or self.token is None):
            raise ParameterError(
                f"{self.host} can be reached from elsewhere: listen on 127.0.0.1, or with TLS and a token",
                advice={"certificate": None, "private_key": None, "token": None},
            )

    def credentials(self) -> grpc.ServerCredentials | None:
        """For gRPC; None without TLS."""
        if self.certificate is None or self.private_key is None:
            return None
        try:
            return grpc.ssl_server_credentials(
                [(self.private_key.read_bytes(), self.certificate.read_bytes())]
            )
        except OSError as error:
            raise FileError(f"{error.filename} cannot be read: {reason_of(error)}") from None


@dataclass(frozen=True)
class Addresses:
    """Where a server can be reached."""

    http: str
    grpc: str


def serve(
    served: ServedFile,
    listening: Listening,
    *,
    name: str | None = None,
    threads: int = 1,
    batch_rows: int = 0,
    on_ready: Callable[[Addresses], None] = lambda addresses: None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; those that are being answered then are finished.

    Args:
        served: the network.
        listening: where, and with what.
        name: what requests call it; None for the name of its file.
        threads: how many requests are computed at a time.
        batch_rows: put requests that wait together, up to so many rows; 0 for each on its own.
        on_ready: called once, when requests are answered.

    Raises:
        ParameterError: if an address or port cannot be used.
        FileError: if the network or a certificate cannot be used.
    """
    inference = Inference(
        served, name=name or served.path.stem, threads=threads, batch_rows=batch_rows, token=listening.token
    )
    try:
        asyncio.run(_serve(inference, listening, on_ready))
    finally:
        inference.close()


async def _serve(inference: Inference, listening: Listening, on_ready: Callable[[Addresses], None]) -> None:
    credentials = listening.credentials()
    bound = _bound(listening.host, listening.port)
    rpc = grpc_door(inference)
    place = f"{_in_url(listening.host)}:{listening.grpc_port}"
    try:
        grpc_port = (
            rpc.add_insecure_port(place) if credentials is None else rpc.add_secure_port(place, credentials)
        )
    except RuntimeError:
        bound.close()
        raise _taken(listening.host, listening.grpc_port, "the port is taken, or not yours") from None
    web = _Web(uvicorn.Config(
        http_door(inference), log_level="error", access_log=False, server_header=False, lifespan="off",
        http="httptools", ws="none", timeout_graceful_shutdown=SECONDS_TO_FINISH,
        ssl_certfile=listening.certificate, ssl_keyfile=listening.private_key,
    ))  # fmt: skip
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await rpc.start()
    http = asyncio.create_task(web.serve(sockets=[bound]))
    while not web.started and not http.done():
        await asyncio.sleep(0.01)
    if not http.done():
        inference.is_ready = True
        secure, host = "" if credentials is None else "s", _in_url(listening.host)
        port = bound.getsockname()[1]
        on_ready(Addresses(f"http{secure}://{host}:{port}", f"grpc{secure}://{host}:{grpc_port}"))
        await asyncio.wait(
            [http, asyncio.create_task(stopping.wait())], return_when=asyncio.FIRST_COMPLETED
        )
    inference.is_ready = False
    web.should_exit = True
    await asyncio.gather(rpc.stop(SECONDS_TO_FINISH), http)


class _Web(uvicorn.Server):
    """Uvicorn's server, which leaves signals to us: there are two doors to close."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def _bound(host: str, port: int) -> socket.socket:
    """A socket that says that it is TCP: without that, asyncio leaves 40 ms between small packets."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(256)
        return made
    except (OSError, OverflowError) as error:
        made.close()
        reason = reason_of(error) if isinstance(error, OSError) else "there is no such port"
        raise _taken(host, port, reason) from None


def _taken(host: str, port: int, reason: str) -> ParameterError:
    return ParameterError(f"{host}:{port} cannot be listened on: {reason}: choose another port")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
