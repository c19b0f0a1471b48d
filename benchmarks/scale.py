"""Whether a delivery's cost grows only with its data: a thousand to a million images, 32x32 to 512x512.

Made-up images in an .npy file, tiles of 8, 8-bit shards, in a temporary folder that is removed. Each
delivery runs in a process of its own. Processor time counts from the first row to the last, with all
processes that were started for it, and is told for a sample (numbers) and for a megapixel (sizes): others
who use the machine change it little. A part of it is fixed, so it is told as well what each further image
costs: the difference to the delivery before over the difference in images.
Memory is the most that all processes had of their own at any time; pages of the mapped file, which the
system takes back at will, are told apart. A million images take 3 GB of disk. `--only ray` does the same
with Ray, whose start is counted in.
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
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import mole
from common import write_result
from mole.provider.deliver import deliver
from mole.provider.engines import EngineName

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


def family() -> list[Path]:
    """Folders of /proc of this process and of all that descend from it."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = [os.getpid()]
    for process in found:  # grows meanwhile
        found += children.get(process, [])
    return [Path("/proc") / str(process) for process in found]


def processor_seconds() -> float:
    """What the family has had of the processors, with members that have ended."""
    ticks = 0
    for process in family():
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Memory(threading.Thread):
    """Looks every few milliseconds how much memory the family has of its own."""

    def __init__(self, pause: float) -> None:
        super().__init__(daemon=True)
        self.most, self._pause = 0, pause
        self.done = threading.Event()

    def run(self) -> None:
        """Until `done` is set."""
        while not self.done.wait(self._pause):
            self.most = max(self.most, sum(map(self._own, family())))

    @staticmethod
    def _own(process: Path) -> int:
        try:
            lines = (process / "status").read_text().splitlines()
        except OSError:
            return 0
        kinds = ("RssAnon", "RssShmem")
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(kinds))


def measure(count: int, shape: tuple[int, int, int], folder: Path, engine: EngineName) -> dict[str, Any]:
    """One delivery."""
    path = made_up(folder / "images.npy", count, shape)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(16, shape[0], 7, 7)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=shape, stride=2, padding=3)
    key = mole.MorphKey.generate(shape, tile=TILE)
    marks: list[tuple[float, float]] = []
    memory = Memory(pause=0.02 if engine == "local" else 0.5)
    memory.start()
    start = time.perf_counter()
    delivered = deliver(
        path, layer, key, folder / "delivery", dtype="int8", engine=engine,
        progress=lambda done, total: marks.append((processor_seconds(), time.perf_counter())),
    )  # fmt: skip
    seconds = time.perf_counter() - start
    memory.done.set()
    (processor, wall), (processor_end, wall_end) = marks[0], marks[-1]
    megapixels = count * shape[1] * shape[2] / 1e6
    spent = processor_end - processor
    return {
        "images": count,
        "shape": "x".join(map(str, shape)),
        "processor_s": round(spent, 2),
        "processor_ms_a_sample": round(1000 * spent / count, 4),
        "processor_s_a_megapixel": round(spent / megapixels, 4),
        "wall_s": round(wall_end - wall, 1),
        "whole_delivery_s": round(seconds, 1),
        "own_memory_mb": round(memory.most / 1e6),
        "with_mapped_file_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6),
        "bytes_over_plain": round(delivered.delivery.manifest.data_bytes / path.stat().st_size, 3),
    }


def in_a_process(count: int, shape: tuple[int, int, int], engine: EngineName = "local") -> dict[str, Any]:
    """Measure apart, with a ledger that goes with the folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--one", folder, engine, str(count), *map(str, shape)]
        state = {**os.environ, "XDG_STATE_HOME": folder}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=state)
    result: dict[str, Any] = json.loads(done.stdout)
    print(result, flush=True)
    return result


def more_and_more(counts: Sequence[int], engine: EngineName) -> list[dict[str, Any]]:
    """Deliveries of more and more images, and what each further image costs."""
    results = [in_a_process(count, (1, 32, 32), engine) for count in counts]
    for before, after in pairwise(results):
        further = (after["processor_s"] - before["processor_s"]) / (after["images"] - before["images"])
        after["processor_ms_each_further_sample"] = round(1000 * further, 4)
    return results


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=NUMBERS[-1], help="leave out larger numbers of images")
    parser.add_argument("--only", choices=("numbers", "sizes", "ray"))
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        folder, engine, count, *sides = arguments.one
        channels, height, width = map(int, sides)
        print(json.dumps(measure(int(count), (channels, height, width), Path(folder), engine)))
        return
    setting = {"tile": TILE, "dtype": "int8"}
    counts = [count for count in NUMBERS if count <= arguments.most]
    if arguments.only in (None, "numbers"):
        write_result("scale_numbers", {**setting, "results": more_and_more(counts, "local")})
    if arguments.only in (None, "sizes"):
        sizes = [in_a_process(PIXELS // side**2, (3, side, side)) for side in SIDES]
        write_result("scale_sizes", {**setting, "results": sizes})
    if arguments.only in (None, "ray"):
        write_result("scale_ray", {**setting, "results": more_and_more(counts[1:], "ray")})


if __name__ == "__main__":
    main()
