"""How fast a whole data set is delivered, against the bare matrix product of the same run.

Give --images FILE.npz with CIFAR-10 (x_train, y_train, x_test, y_test); otherwise it makes up as many
images. The rate counts from the first row to the last: reading, normalising, multiplying, encoding and
writing shards. Making the key is told apart. Peak memory is that of a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import mole
from common import write_result
from vgg import INPUT_SHAPE, vgg_layer

ROUNDS = 5
BATCH = 4096


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help=".npz with x_train, y_train, x_test, y_test")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.images or made_up(Path(folder) / "images.npz")
        if arguments.one:
            print(json.dumps(deliver_once(path, arguments.one, Path(folder) / "out")))
            return
        results = {}
        for dtype in ("float32", "int8"):
            command = [sys.executable, __file__, "--images", str(path), "--one", dtype]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results[dtype] = json.loads(done.stdout)
    source = arguments.images.stem if arguments.images else "made up"
    write_result("deliver", {"images": source, "kappa": 1, **results})


def made_up(path: Path) -> Path:
    """As many random images as CIFAR-10 has."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, count in (("train", 50_000), ("test", 10_000)):
        arrays[f"x_{split}"] = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        arrays[f"y_{split}"] = rng.integers(0, 10, count)
    np.savez(path, **arrays)
    return path


def bare_rate(key: mole.MorphKey) -> float:
    """Images a second of nothing but the matrix product, in memory."""
    core = key.morphing.core.matrix.astype(np.float32)
    rows = np.random.default_rng(0).normal(size=(BATCH, len(core))).astype(np.float32)
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        _ = rows @ core
        times.append(time.perf_counter() - start)
    return BATCH / float(np.median(times[1:]))


def deliver_once(path: Path, dtype: str, out: Path) -> dict[str, Any]:
    """One delivery with everything that was measured on the way."""
    from mole.data.opening import open_source  # noqa: PLC0415  (measured in a process of its own)
    from mole.delivery.deliver import deliver  # noqa: PLC0415
    from mole.delivery.options import Options  # noqa: PLC0415
    from mole.files.store import LocalStore  # noqa: PLC0415

    start = time.perf_counter()
    key = mole.MorphKey.generate(INPUT_SHAPE)
    key_seconds = time.perf_counter() - start
    before = bare_rate(key)
    source = open_source(str(path))
    marks: list[float] = []
    start = time.perf_counter()
    delivered = deliver(
        source, vgg_layer(), key, LocalStore(out), Options(dtype=dtype),
        progress=lambda done, total: marks.append(time.perf_counter()),
    )  # fmt: skip
    total = time.perf_counter() - start
    bare = (before + bare_rate(key)) / 2
    rate = delivered.manifest.rows / (marks[-1] - marks[0])
    plain_bytes = delivered.manifest.rows * 3072
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
    return {
        "rows": delivered.manifest.rows,
        "images_per_s": round(rate),
        "bare_product_images_per_s": round(bare),
        "share_of_bare_product": round(rate / bare, 3),
        "data_bytes_over_plain_8_bit_bytes": round(delivered.manifest.data_bytes / plain_bytes, 4),
        "peak_memory_gb": round(peak / 1e9, 2),
        "key_s": round(key_seconds, 1),
        "whole_delivery_s": round(total, 1),
    }


if __name__ == "__main__":
    main()
