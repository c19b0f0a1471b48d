"""What morphing costs a server: the same network on plain data and on morphed data, served in one run.

Both are exported to ONNX and served by `mole serve` on this machine while a few clients ask without pause:
one server after another, round by round. Every turn gives requests a second, and morphed over plain is told
of each round: the median, the lowest and the highest. Asked for: tiles at 80 % of plain or more. Clients
and servers share the processor, as they do not in earnest.

Beside it stand the multiplications of the first layer and of the whole network, which say how much of the
difference has to be: a small network's first layer is much of it. Another part says what putting waiting
requests together is worth, for requests of one row from many clients.
"""

import argparse
import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from transformers import ViTConfig, ViTForImageClassification

import mole
from common import write_result
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.exchange.inference_messages import Message, Tensor
from mole.provider.channels import Address, Channel
from mole.provider.grpc_channel import GrpcChannel
from mole.provider.http_channel import HttpChannel
from mole.scheme.shapes import Shape
from mole.torch import attach, export_first_layer, export_model
from mole.torch.macs import count_macs
from mole.torch.networks import build_network
from networks import resnet50

SHAPE, IMAGENET, CLASSES = (3, 32, 32), (3, 224, 224), 10
DOORS = ("http", "grpc")
CLIENTS, MANY_CLIENTS = 4, 16
WARM_UP = 0.3  # seconds


def vit_s_16() -> nn.Module:
    """ViT-S/16 as Hugging Face has it."""
    config: Any = ViTConfig
    sizes = {"hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6}
    return ViTForImageClassification(config(num_labels=CLASSES, **sizes))


@dataclass(frozen=True)
class Network:
    """A network, the images that it takes, how many come in a request, and how they are cut.

    Cuts are sides of tiles; None stands for blocks of rows.
    """

    build: Callable[[], nn.Module]
    shape: Shape
    rows: int
    cuts: dict[str, int | None]


NETWORKS = {
    "small_resnet": Network(
        lambda: build_network("small_resnet", SHAPE, CLASSES), SHAPE, 8, {"tiles of 4": 4}
    ),
    "VGG-16": Network(
        lambda: build_network("vgg16", SHAPE, CLASSES), SHAPE, 8, {"rows": None, "tiles of 4": 4}
    ),
    "ResNet-50": Network(resnet50, IMAGENET, 1, {"tiles of 8": 8}),
    "ViT-S/16": Network(vit_s_16, IMAGENET, 1, {"tiles of 16": 16}),
}


class Turn(NamedTuple):
    """Requests a second, and the seconds that each of them took."""

    rate: float
    latencies: list[float]


class Exported(NamedTuple):
    """A file to serve; multiplications of its network and of the first layer, a row."""

    file: Path
    macs: int
    first_layer_macs: int


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
    return Turn(len(latencies) / taken, latencies)


def exported(name: str, cut: str, folder: Path) -> Exported:
    """A network of the table, for plain data or for data of a key."""
    network = NETWORKS[name]
    torch.manual_seed(0)
    model = network.build()
    layer = export_first_layer(model, network.shape)
    plain_macs = count_macs(model, network.shape)
    first_macs = math.prod(layer.output_shape) * math.prod(layer.weight.shape[1:])
    if cut != "plain":
        key = mole.MorphKey.generate(network.shape, insecure_seed=bytes(32), tile=network.cuts[cut])
        attach(model, mole.augment(layer, key))
    macs = count_macs(model, network.shape)
    file = folder / f"{name.replace('/', '-')}-{cut}.onnx"
    export_model(model.eval(), CheckpointFacts(name, network.shape, CLASSES), file)
    print(f"{name}, {cut}: {file.stat().st_size >> 20} MiB", file=sys.stderr)
    return Exported(file, macs, macs - plain_macs + first_macs)


def compared(name: str, folder: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """One network, plain and morphed, over both doors."""
    network = NETWORKS[name]
    rows = np.random.default_rng(0).normal(size=(network.rows, *network.shape)).astype(np.float32)
    files = {cut: exported(name, cut, folder) for cut in ("plain", *network.cuts)}
    turns: dict[tuple[str, str], list[Turn]] = {(cut, door): [] for door in DOORS for cut in files}
    with ExitStack() as stack:
        servers = {cut: stack.enter_context(Server(one.file)) for cut, one in files.items()}
        for number in range(rounds):
            for (cut, door), some in turns.items():
                url, model = servers[cut].where[door], servers[cut].where["model"]
                if number == 0:
                    load(url, model, rows, CLIENTS, WARM_UP)
                some.append(load(url, model, rows, CLIENTS, seconds))
    return [
        {
            "network": name, "shape": network.shape, "data": cut, "door": door, "rows": network.rows,
            "macs": files[cut].macs, "first_layer_macs": files[cut].first_layer_macs,
            "onnx_mb": round(files[cut].file.stat().st_size / 1e6, 1), **told(some),
            "rows_per_s": round(told(some)["requests_per_s"] * network.rows, 1),
            "share_of_plain_by_macs": round(files["plain"].macs / files[cut].macs, 3),
            **shares(some, turns["plain", door], "share_of_plain"),
        }
        for (cut, door), some in turns.items()
    ]  # fmt: skip


def told(turns: list[Turn]) -> dict[str, float]:
    """The median rate of turns, and latencies of all their requests."""
    p50, p99 = 1000 * np.quantile([one for turn in turns for one in turn.latencies], [0.5, 0.99])
    rate = statistics.median(turn.rate for turn in turns)
    return {"requests_per_s": round(rate, 1), "p50_ms": round(p50, 2), "p99_ms": round(p99, 2)}


def shares(some: list[Turn], others: list[Turn], name: str) -> dict[str, float]:
    """Throughput over that of others, round by round."""
    found = [one.rate / other.rate for one, other in zip(some, others, strict=True)]
    return {
        name: round(statistics.median(found), 3),
        "lowest": round(min(found), 3),
        "highest": round(max(found), 3),
    }


def batching(file: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Requests of one row from many clients, each computed on its own and put together."""
    row = np.random.default_rng(0).normal(size=(1, *SHAPE)).astype(np.float32)
    turns: dict[int, list[Turn]] = {0: [], 64: []}
    with ExitStack() as stack:
        servers = {most: stack.enter_context(Server(file, "--batch-rows", str(most))) for most in turns}
        for number in range(rounds):
            for most, some in turns.items():
                where = servers[most].where
                if number == 0:
                    load(where["grpc"], where["model"], row, MANY_CLIENTS, WARM_UP)
                some.append(load(where["grpc"], where["model"], row, MANY_CLIENTS, seconds))
    return [
        {
            "batch_rows": most, "clients": MANY_CLIENTS, "rows": 1, "door": "grpc", **told(some),
            **shares(some, turns[0], "share_of_alone"),
        }
        for most, some in turns.items()
    ]  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.5, help="of load, in each turn")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=[*NETWORKS])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        networks = [
            row
            for network in options.networks
            for row in compared(network, folder, options.rounds, options.seconds)
        ]
        small = exported("small_resnet", "tiles of 4", folder)
        together = batching(small.file, options.rounds, options.seconds)
    write_result(
        "serving",
        {
            "clients": CLIENTS, "rounds": options.rounds, "seconds": options.seconds,
            "networks": networks, "batching": together,
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
