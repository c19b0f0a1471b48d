"""Whether a delivery's cost grows only with its data: a thousand to a million images, 32x32 to 512x512.

Made-up images in an .npy file, tiles of 8, 8-bit shards, in a temporary folder that is removed. Each
delivery runs in a process of its own. Processor time counts from the first row to the last and is told
for a sample (numbers) and for a megapixel (sizes): a machine that others use as well changes it little.
Memory is the most that the process had of its own at any time; pages of the mapped file, which the system
takes back at will, are told apart. A million images take 3 GB of disk.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import mole
from common import write_result
from mole.provider.deliver import deliver

NUMBERS = (1_000, 10_000, 100_000, 1_000_000)
SIDES = (32, 64, 128, 256, 512)
PIXELS = 20 * 2**20  # of all images together, while sides change
TILE = 8
CHUNK = 4096


def made_up(path: Path, count: int, shape: tuple[int, int, int]) -> Path:
    """A file of random images, written in pieces; a few hundred different ones, over and over."""
    channels, height, width = shape
    pieces = np.random.default_rng(0).integers(0, 256, (256, height, width, channels), dtype=np.uint8)
    images = np.lib.format.open_memmap(path, "w+", np.uint8, (count, height, width, channels))
    for start in range(0, count, CHUNK):
        rows = np.arange(start, min(start + CHUNK, count)) % len(pieces)
        images[start : start + len(rows)] = pieces[rows]
    images.flush()
    return path


class Memory(threading.Thread):
    """Looks every few milliseconds how much memory the process has of its own."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.done = threading.Event()

    def run(self) -> None:
        """Until `done` is set."""
        while not self.done.wait(0.02):
            status = Path("/proc/self/status").read_text().splitlines()
            own = next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024
            self.most = max(self.most, own)


def measure(count: int, shape: tuple[int, int, int], folder: Path) -> dict[str, Any]:
    """One delivery."""
    path = made_up(folder / "images.npy", count, shape)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(16, shape[0], 7, 7)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=shape, stride=2, padding=3)
    key = mole.MorphKey.generate(shape, tile=TILE)
    marks: list[tuple[float, float]] = []
    memory = Memory()
    memory.start()
    start = time.perf_counter()
    delivered = deliver(
        path, layer, key, folder / "delivery", dtype="int8",
        progress=lambda done, total: marks.append((time.process_time(), time.perf_counter())),
    )  # fmt: skip
    seconds = time.perf_counter() - start
    memory.done.set()
    (processor, wall), (processor_end, wall_end) = marks[0], marks[-1]
    megapixels = count * shape[1] * shape[2] / 1e6
    spent = processor_end - processor
    return {
        "images": count,
        "shape": "x".join(map(str, shape)),
        "processor_ms_a_sample": round(1000 * spent / count, 4),
        "processor_s_a_megapixel": round(spent / megapixels, 4),
        "wall_s": round(wall_end - wall, 1),
        "whole_delivery_s": round(seconds, 1),
        "own_memory_mb": round(memory.most / 1e6),
        "with_mapped_file_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6),
        "bytes_over_plain": round(delivered.delivery.manifest.data_bytes / path.stat().st_size, 3),
    }


def in_a_process(count: int, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Measure apart, with a ledger that goes with the folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--one", folder, str(count), *map(str, shape)]
        state = {**os.environ, "XDG_STATE_HOME": folder}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=state)
    result: dict[str, Any] = json.loads(done.stdout)
    print(result, flush=True)
    return result


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=NUMBERS[-1], help="leave out larger numbers of images")
    parser.add_argument("--only", choices=("numbers", "sizes"))
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        folder, count, *sides = arguments.one
        channels, height, width = map(int, sides)
        print(json.dumps(measure(int(count), (channels, height, width), Path(folder))))
        return
    setting = {"tile": TILE, "dtype": "int8"}
    if arguments.only != "sizes":
        numbers = [in_a_process(count, (1, 32, 32)) for count in NUMBERS if count <= arguments.most]
        write_result("scale_numbers", {**setting, "results": numbers})
    if arguments.only != "numbers":
        sizes = [in_a_process(PIXELS // side**2, (3, side, side)) for side in SIDES]
        write_result("scale_sizes", {**setting, "results": sizes})


if __name__ == "__main__":
    main()
