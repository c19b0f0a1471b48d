"""Run `mole verify` on one good delivery many times while every core is busy, and count how it ends.

    python tools/verify_under_load.py --runs 200 --load 4

A reader whose threads outlive Python aborts in a few per cent of such runs, and only in such runs. Ends
with 1 if a single one did not end with 0.
"""

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import mole

MOLE = Path(sys.executable).with_name("mole")


def keep_busy() -> None:
    """Multiply for ever."""
    matrix = np.ones((300, 300))
    while True:
        matrix @ matrix


def make_delivery(folder: Path) -> Path:
    """A small delivery of many shards."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (400, 8, 8, 3), dtype=np.uint8), rng.integers(0, 10, 400)
    np.savez(folder / "data.npz", x_train=images, y_train=labels)
    weight = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(3, 8, 8), padding=1)
    mole.deliver(
        folder / "data.npz",
        layer,
        mole.MorphKey.generate((3, 8, 8)),
        folder / "delivery",
        rows_per_shard=20,
    )
    return folder / "delivery"


def main() -> int:
    """Read the arguments, make a delivery, verify it again and again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument(
        "--load", type=int, default=multiprocessing.cpu_count(), help="busy processes beside it"
    )
    arguments = parser.parse_args()
    busy = [multiprocessing.Process(target=keep_busy, daemon=True) for _ in range(arguments.load)]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mole-load-") as folder:
        delivery = make_delivery(Path(folder))
        for process in busy:
            process.start()
        codes: Counter[int] = Counter()
        for run in range(1, arguments.runs + 1):
            command = [str(MOLE), "verify", str(delivery), "--quiet"]
            codes[subprocess.run(command, capture_output=True, check=False).returncode] += 1
            if run % 20 == 0:
                sys.stderr.write(f"{run} runs, by exit code: {dict(codes)}\n")
    for process in busy:
        process.terminate()
    minutes = (time.monotonic() - started) / 60
    sys.stdout.write(f"{arguments.runs} runs in {minutes:.1f} minutes, by exit code: {dict(codes)}\n")
    return 0 if set(codes) == {0} else 1


if __name__ == "__main__":
    sys.exit(main())
