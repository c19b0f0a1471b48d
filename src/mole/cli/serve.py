"""`mole serve`: the inference server. Its packages are an extra, loaded when the file was looked at."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.named_files import check_input
from mole.cli.options import JsonOption, QuietOption
from mole.cli.terminal import say, show
from mole.errors import FileError, MissingExtraError
from mole.exchange.served_model import read_served
from mole.storage.atomic import reason_of
from mole.storage.regular import read_regular

if TYPE_CHECKING:
    from mole.serving.server import Addresses

LONGEST_TOKEN = 4096


def serve(
    model: Annotated[
        Path, typer.Argument(metavar="FILE", help="A network that `mole export` wrote (.onnx).")
    ],
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Where to listen; beyond this machine only with TLS and a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", help="For HTTP; 0 for any that is free.", min=0, max=65535)
    ] = 8080,
    grpc_port: Annotated[
        int, typer.Option(metavar="N", help="For gRPC; 0 for any that is free.", min=0, max=65535)
    ] = 8081,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What requests call it, if not its file's name.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS: the server's certificate, PEM.")
    ] = None,
    private_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS: the certificate's private key, PEM.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File whose first line is the token that requests have to bring."
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Requests to compute at a time, if not one per core.", min=1, max=1024
        ),
    ] = None,
    batch_rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Compute requests that wait together, up to N rows; 0 for not.",
            min=0,
            max=4096,
        ),
    ] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Answer morphed requests over the network, in the Open Inference Protocol (KServe v2).

    It takes what its network was trained on: data of one key. It never has the key. Stop it with Ctrl-C or
    SIGTERM: what is being answered then is finished.
    """
    check_input(model)
    served = read_served(model)
    for file in (certificate, private_key):
        check_input(file)
    token = None if token_file is None else read_token(token_file)
    server = _server()
    logging.basicConfig(level=logging.ERROR)
    listening = server.Listening(host, port, grpc_port, certificate, private_key, token)

    def ready(addresses: "Addresses") -> None:
        show({"http": addresses.http, "grpc": addresses.grpc, "model": name or model.stem}, as_json=as_json)
        say("Answering requests; stop it with Ctrl-C.", quiet=quiet)
        typer.get_text_stream("stdout").flush()

    server.serve(
        served, listening, name=name, threads=threads or os.cpu_count() or 1, batch_rows=batch_rows,
        on_ready=ready,
    )  # fmt: skip


def read_token(path: Path) -> str:
    """The first line of a file.

    Raises:
        FileError: if it cannot be read, or is empty.
    """
    try:
        content = read_regular(path, LONGEST_TOKEN)
        lines = content.decode().splitlines()
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {reason_of(error)}") from None
    if not lines or not lines[0].strip():
        raise FileError(f"{path} holds no token: its first line is empty")
    return lines[0].strip()


def _server() -> Any:
    """The inference server."""
    try:
        import mole.serving.server  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("mole"):
            raise
        raise MissingExtraError(f"the server needs {error.name}", "serve") from None
    return mole.serving.server
