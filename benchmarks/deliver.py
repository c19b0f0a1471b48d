"""How fast a whole data set is delivered, against the bare matrix product of the same run.

Give --images FILE.npz with CIFAR-10 (x_train, y_train, x_test, y_test); otherwise it makes up as many
images. The rate counts from the first row to the last: reading, normalising, multiplying, encoding and
writing shards. Making the key is told apart. Each setting runs in a process of its own, whose peak memory
is reported, several times; the product is measured before and after each, and medians are told. On a busy
machine the clock says little, so processor time is told as well: what products of one thread take of it.
Ray's time counts from its start to the last shard, and also without the start: from the first shards of all
workers to the last. On one machine it can only cost. A sealed delivery is made right after an open one,
round by round, and told as a share of its rate.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyrage
from threadpoolctl import threadpool_limits

import mole
from common import others, write_result
from mole.exchange.shards import Dtype
from mole.provider.deliver import deliver
from mole.provider.engines import EngineName
from vgg import INPUT_SHAPE, vgg_layer

ROUNDS = 3
PRODUCTS = 5
BATCH = 4096
PIECE = 1365  # images, as a delivery multiplies them
SETTINGS = (("local", "float32"), ("local", "int8"), ("ray", "float32"))
RECIPIENT = str(pyrage.x25519.Identity.generate().to_public())


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help=".npz with x_train, y_train, x_test, y_test")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help="make up so many images only, and write no result")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.images or made_up(Path(folder) / "images.npz", arguments.rows)
        if arguments.one:
            engine, dtype = arguments.one
            print(json.dumps({**measure(path, engine, dtype, Path(folder)), "used_by_others": others()}))
            return
        results: dict[str, Any] = {}
        for engine, dtype in SETTINGS:
            command = [sys.executable, __file__, "--images", str(path), "--one", engine, dtype]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results[dtype if engine == "local" else engine] = json.loads(done.stdout)
    local, ray = results["float32"]["images_per_s"], results["ray"]
    ray["share_of_local_rate"] = round(ray["images_per_s"] / local, 3)
    ray["share_of_local_rate_without_start"] = round(ray["images_per_s_without_start"] / local, 3)
    source = arguments.images.stem if arguments.images else "made up"
    if arguments.rows:
        print(json.dumps(results, indent=1))
        return
    del ray["used_by_others"]  # what Ray's own processes use looks like others'
    used = max(results[dtype]["used_by_others"] for dtype in ("float32", "int8"))
    described = {"images": source, "kappa": 1, "rounds": ROUNDS}
    write_result("deliver", {**described, **results}, used_by_others=used)


def made_up(path: Path, rows: int | None = None) -> Path:
    """As many random images as CIFAR-10 has, or some rows of one split."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, count in (("train", 50_000), ("test", 10_000)) if rows is None else (("train", rows),):
        arrays[f"x_{split}"] = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        arrays[f"y_{split}"] = rng.integers(0, 10, count)
    np.savez(path, **arrays)
    return path


def bare_rate(key: mole.MorphKey) -> float:
    """Images a second of nothing but the matrix product, in memory."""
    core = key.morphing.core.matrix.astype(np.float32)
    rows = np.random.default_rng(0).normal(size=(BATCH, len(core))).astype(np.float32)
    times = []
    for _ in range(PRODUCTS + 1):
        start = time.perf_counter()
        _ = rows @ core
        times.append(time.perf_counter() - start)
    return BATCH / float(np.median(times[1:]))


def product_seconds(key: mole.MorphKey) -> float:
    """Processor seconds that one thread takes to multiply one image."""
    core = key.morphing.core.matrix.astype(np.float32)
    rows = np.random.default_rng(0).normal(size=(PIECE, len(core))).astype(np.float32)
    out, times = np.empty_like(rows), []
    with threadpool_limits(1):
        for _ in range(PRODUCTS + 1):
            start = time.process_time()
            np.matmul(rows, core, out=out)
            times.append(time.process_time() - start)
    return float(np.median(times[1:])) / PIECE


def measure(path: Path, engine: EngineName, dtype: Dtype, folder: Path) -> dict[str, Any]:
    """Several deliveries with everything that was measured on the way."""
    start = time.perf_counter()
    key = mole.MorphKey.generate(INPUT_SHAPE)
    key_seconds = time.perf_counter() - start
    rounds, shares, whole = [], [], []
    for index in range(ROUNDS):
        rounds.append(deliver_once(path, engine, dtype, folder / str(index), key))
        if engine == "local":
            sealed = deliver_once(
                path, engine, dtype, folder / f"{index}-sealed", key, recipients=[RECIPIENT]
            )
            shares.append(sealed["rate"] / rounds[-1]["rate"])
            whole.append(rounds[-1]["seconds"] / sealed["seconds"])
    figures: dict[str, float] = {
        name: float(np.median([measured[name] for measured in rounds])) for name in rounds[0]
    }
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
    return {
        "rows": int(figures["rows"]),
        "images_per_s": round(figures["rate"]),
        "bare_product_images_per_s": round(figures["bare"]),
        "share_of_bare_product": round(figures["share"], 3),
        "shares_of_each_round": [round(measured["share"], 3) for measured in rounds],
        **(
            {"images_per_s_without_start": round(figures["rate_without_start"])}
            if engine == "ray"
            else {"product_share_of_processor_time": round(figures["processor_share"], 3)}
        ),
        "data_bytes_over_plain_8_bit_bytes": round(figures["bytes"], 4),
        "peak_memory_gb": round(peak / 1e9, 2),
        **(sealing(shares, whole) if shares else {}),
        "key_s": round(key_seconds, 1),
        "whole_delivery_s": round(figures["seconds"], 1),
    }


def sealing(shares: list[float], whole: list[float]) -> dict[str, Any]:
    """The rate of sealed deliveries as a share of open ones: of the shards, and from start to end."""
    return {
        "sealed_share_of_open_rate": round(float(np.median(shares)), 3),
        "sealed_shares_of_each_round": [round(share, 3) for share in shares],
        "sealed_share_of_whole_delivery": round(float(np.median(whole)), 3),
    }


def deliver_once(
    path: Path,
    engine: EngineName,
    dtype: Dtype,
    out: Path,
    key: mole.MorphKey,
    *,
    recipients: Sequence[str] = (),
) -> dict[str, float]:
    """One delivery between two measurements of the bare product."""
    before, before_seconds = bare_rate(key), product_seconds(key)
    marks: list[tuple[float, float, int]] = []
    start = time.perf_counter()
    delivered = deliver(
        path, vgg_layer(), key, out, dtype=dtype, engine=engine, recipients=recipients,
        progress=lambda done, total: marks.append((time.perf_counter(), time.process_time(), done)),
    )  # fmt: skip
    seconds = time.perf_counter() - start
    bare, product = (before + bare_rate(key)) / 2, (before_seconds + product_seconds(key)) / 2
    manifest = delivered.delivery.manifest
    rows = manifest.rows
    rate = rows / (marks[-1][0] - marks[0][0])
    processor_share = rows * product / (marks[-1][1] - marks[0][1])
    warm = marks[min(os.cpu_count() or 1, len(marks) - 2)]  # every worker has made a shard
    rate_without_start = (rows - warm[2]) / (marks[-1][0] - warm[0])
    data_bytes = manifest.data_bytes / (rows * 3072)
    shutil.rmtree(out)
    return {
        "rows": rows, "rate": rate, "bare": bare, "share": rate / bare, "bytes": data_bytes,
        "seconds": seconds, "processor_share": processor_share, "rate_without_start": rate_without_start,
    }  # fmt: skip


if __name__ == "__main__":
    main()
