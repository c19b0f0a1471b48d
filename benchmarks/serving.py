"""What morphing costs a server: the same network on plain data and on morphed data, served in one run.

Both are exported to ONNX and served by `mole serve` on this machine, in turns, while a few clients ask
without pause; every turn gives requests a second and latencies, and morphed over plain is told from the
medians. Asked for: tiles at 80 % of plain or more. Beside that stands what putting waiting requests
together is worth, for requests of one row from many clients.
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import mole
from common import write_result
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.exchange.inference_messages import Message, Tensor
from mole.provider.channels import Address, Channel
from mole.provider.grpc_channel import GrpcChannel
from mole.provider.http_channel import HttpChannel
from mole.torch import attach, export_first_layer, export_model
from mole.torch.networks import build_network

SHAPE = (3, 32, 32)
# The side of tiles; None for blocks of rows, and 0 for plain data.
NETWORKS: dict[str, dict[str, int | None]] = {
    "vgg16": {"rows": None, "tiles of 4": 4},
    "small_resnet": {"tiles of 4": 4},
}
CLIENTS, ROWS = 4, 8
MANY_CLIENTS = 16


class Turn(NamedTuple):
    """Requests a second, and latencies in milliseconds."""

    rate: float
    p50: float
    p99: float


class Server:
    """`mole serve` on ports that are free; a context manager."""

    def __init__(self, file: Path, *options: str) -> None:
        ports = () if "--port" in options else ("--port", "0", "--grpc-port", "0")
        command = [str(Path(sys.executable).with_name("mole")), "serve", str(file), *ports, *options]
        self.process = subprocess.Popen([*command, "--json", "--quiet"], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None  # noqa: S101  (it is a pipe)
        self.where: dict[str, str] = json.loads(self.process.stdout.readline())

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def load(url: str, model: str, rows: np.ndarray[Any, Any], clients: int, seconds: float) -> Turn:
    """Ask without pause from several threads, each with a connection of its own."""
    latencies: list[float] = []
    end = time.monotonic() + seconds

    def ask() -> None:
        address = Address.of(url, None, None, 60)
        channel: Channel = GrpcChannel(address) if url.startswith("grpc") else HttpChannel(address)
        message = Message((Tensor.of("morphed", rows),), "id", is_binary=True)
        while time.monotonic() < end:
            began = time.monotonic()
            channel.infer(model, message)
            latencies.append(time.monotonic() - began)
        channel.close()

    began = time.monotonic()
    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.monotonic() - began
    p50, p99 = np.quantile(latencies, [0.5, 0.99]) * 1000
    return Turn(len(latencies) / taken, float(p50), float(p99))


def exported(name: str, tile: int | None, path: Path) -> Path:
    """A network for plain data, or for data of a key."""
    torch.manual_seed(0)
    model = build_network(name, SHAPE, 10)
    if tile != 0:
        layer = export_first_layer(model, SHAPE)
        key = mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32), tile=tile)
        attach(model, mole.augment(layer, key))
    export_model(model.eval(), CheckpointFacts(name, SHAPE, 10), path)
    return path


def compared(name: str, folder: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """One network, plain and morphed, over both doors."""
    cuts: dict[str, int | None] = {"plain": 0, **NETWORKS[name]}
    turns: dict[tuple[str, str], list[Turn]] = {}
    rows = np.random.default_rng(0).normal(size=(ROWS, *SHAPE)).astype(np.float32)
    files = {what: exported(name, cut, folder / f"{name}-{what}.onnx") for what, cut in cuts.items()}
    for what, file in files.items():
        turns |= {(what, door): [] for door in ("http", "grpc")}
        print(f"{name} {what}: {file.stat().st_size >> 20} MiB", file=sys.stderr)
    for _ in range(rounds):
        for what, file in files.items():
            with Server(file) as server:
                for door in ("http", "grpc"):
                    url, model = server.where[door], server.where["model"]
                    load(url, model, rows, CLIENTS, 0.3)
                    turns[what, door].append(load(url, model, rows, CLIENTS, seconds))
    return [
        {
            "network": name, "data": what, "door": door,
            "onnx_mb": round(files[what].stat().st_size / 1e6, 1), **told(some),
            "share_of_plain": share(some, turns["plain", door]),
        }
        for (what, door), some in turns.items()
    ]  # fmt: skip


def told(turns: list[Turn]) -> dict[str, float]:
    """Medians over turns."""
    rate, p50, p99 = (statistics.median(one) for one in zip(*turns, strict=True))
    return {
        "requests_per_s": round(rate, 1), "rows_per_s": round(rate * ROWS, 1),
        "p50_ms": round(p50, 2), "p99_ms": round(p99, 2),
    }  # fmt: skip


def share(some: list[Turn], plain: list[Turn]) -> float:
    """Throughput over that of plain data, the median over rounds."""
    return round(statistics.median(a.rate / b.rate for a, b in zip(some, plain, strict=True)), 3)


def batching(file: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Requests of one row from many clients, each computed on its own and put together."""
    row = np.random.default_rng(0).normal(size=(1, *SHAPE)).astype(np.float32)
    turns: dict[int, list[Turn]] = {0: [], 64: []}
    for _ in range(rounds):
        for most, some in turns.items():
            with Server(file, "--batch-rows", str(most)) as server:
                load(server.where["grpc"], server.where["model"], row, MANY_CLIENTS, 0.3)
                some.append(load(server.where["grpc"], server.where["model"], row, MANY_CLIENTS, seconds))
    return [
        {
            "batch_rows": most, "clients": MANY_CLIENTS, "rows": 1, "door": "grpc",
            **{name: value for name, value in told(some).items() if name != "rows_per_s"},
            "share_of_alone": share(some, turns[0]),
        }
        for most, some in turns.items()
    ]  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of load, in each turn")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=[*NETWORKS])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        networks = [
            one
            for name in options.networks
            for one in compared(name, Path(folder), options.rounds, options.seconds)
        ]
        together = batching(Path(folder) / "small_resnet-tiles of 4.onnx", options.rounds, options.seconds)
    write_result(
        "serving",
        {
            "shape": SHAPE, "rows": ROWS, "clients": CLIENTS, "rounds": options.rounds,
            "seconds": options.seconds, "networks": networks, "batching": together,
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
