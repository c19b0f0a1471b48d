"""Whether a delivery's cost grows only with its data: ten thousand to a million images, 32x32 to 512x512.

Made-up images in an .npy file, tiles of 8, 8-bit shards, in a temporary folder that is removed. Every row
of the result has a process of its own, which delivers half of the images first, so that what is loaded
once is loaded. Then it delivers half and all of them, in turns, several times where they are few.

Processor time is that of whole deliveries and of all processes that were started for them; others who use
the machine change it little. With Ray, whose workers end unseen, it is all that the machine did, this
program's looking at memory included (twice a second). A part of it is the same for every delivery (8-bit
scales are fitted to some 5,000 images). What grows is what each further image costs: the difference between
both deliveries over the difference in images. Larger images are so few here that all of them are fitted to;
there the cost counts from the first row to the last. Ray starts workers for every delivery, which costs
more than ten thousand images and not the same each time; with it, each further image is what its processes
take while all workers work: from a fifth of the rows to four fifths.

Memory is the most that all processes had of their own at any time, and is looked at from outside; pages of
the mapped file, which the system takes back at will, are told apart. A million images take 8 GB of disk.
`--only ray` does the same with a Ray on this machine that runs already, as a cluster would be, in
shards so small that all of its workers always have one.
"""

import argparse
import contextlib
import json
import logging
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mole
from common import busy_seconds, write_result
from mole.provider.deliver import deliver
from mole.provider.engines import EngineName
from processes import MemoryWatch, processor_seconds

NUMBERS = (10_000, 100_000, 1_000_000)
SIDES = (32, 64, 128, 256, 512)
PIXELS = 20 * 2**20  # of all images together, while sides change
ENOUGH = 600_000  # images that are delivered in turns, all together
MOST_TURNS = 60
WARM = 0.2  # of the rows: in between all workers work
TURNS_WITH_RAY = 5  # its workers stay for a while, and their memory counts
TILE = 8
CHUNK = 4096
ROWS_WITH_RAY = 1_000  # in a shard
Shape = tuple[int, int, int]


class Cost(NamedTuple):
    """Of one delivery: processor time of it all, of its rows, and of each row once all workers work."""

    processor: float
    of_rows: float
    of_further_row: float
    wall: float


class Maker:
    """Delivers made-up images, more or fewer of them."""

    def __init__(self, shape: Shape, folder: Path, engine: EngineName) -> None:
        rng = np.random.default_rng(0)
        weight = rng.normal(size=(16, shape[0], 7, 7)).astype(np.float32)
        self._layer = mole.FirstLayer.conv(weight, None, input_shape=shape, stride=2, padding=3)
        self._key = mole.MorphKey.generate(shape, tile=TILE)
        self._shape, self._folder, self._engine = shape, folder, engine

    def images(self, count: int) -> Path:
        """A file of random images, written in pieces; a few hundred different ones, over and over."""
        channels, height, width = self._shape
        pieces = np.random.default_rng(0).integers(0, 256, (256, height, width, channels), dtype=np.uint8)
        path = self._folder / f"{count}.npy"
        images = np.lib.format.open_memmap(path, "w+", np.uint8, (count, height, width, channels))
        for start in range(0, count, CHUNK):
            rows = np.arange(start, min(start + CHUNK, count)) % len(pieces)
            images[start : start + len(rows)] = pieces[rows]
        images.flush()
        return path

    def cost(self, images: Path) -> tuple[Cost, float]:
        """What one delivery costs, and its bytes over those of the images."""
        out = self._folder / "delivery"
        marks: list[tuple[int, float, float]] = []
        before, start = self._processor(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray gets the key
            delivered = deliver(
                images, self._layer, self._key, out, dtype="int8", engine=self._engine,
                rows_per_shard=ROWS_WITH_RAY if self._engine == "ray" else None,
                progress=lambda done, of: marks.append((done, self._processor(), _of_processes())),
            )  # fmt: skip
        wall, processor = time.perf_counter() - start, self._processor() - before
        (_, first, _), (rows, last, _) = marks[0], marks[-1]
        while_all_work = [mark for mark in marks if WARM <= mark[0] / rows <= 1 - WARM] or marks
        (warm, _, since), (later, _, until) = while_all_work[0], while_all_work[-1]
        cost = Cost(processor, last - first, (until - since) / max(1, later - warm), wall)
        share = delivered.delivery.manifest.data_bytes / images.stat().st_size
        shutil.rmtree(out)
        return cost, share

    def _processor(self) -> float:
        return busy_seconds()[0] if self._engine == "ray" else _of_processes()


def _of_processes() -> float:
    """Of this one and of all that it started, as far as they have not ended unseen."""
    return processor_seconds(os.getpid())


def measure(count: int, shape: Shape, folder: Path, engine: EngineName) -> dict[str, Any]:
    """Deliveries of so many images, and of half of them, in turns."""
    maker = Maker(shape, folder, engine)
    half = count // 2
    few, many = maker.images(half), maker.images(count)
    most = TURNS_WITH_RAY if engine == "ray" else MOST_TURNS
    turns = max(1, min(most, ENOUGH // count))
    with _ray() if engine == "ray" else contextlib.nullcontext():
        maker.cost(few)
        found = [(maker.cost(few), maker.cost(many)) for _ in range(turns)]
    cheap, whole = (
        Cost(
            *(statistics.median(one[which][0][part] for one in found) for part in range(len(Cost._fields)))
        )
        for which in range(2)
    )
    further = (whole.processor - cheap.processor) / (count - half)
    if engine == "ray":
        further = whole.of_further_row
    return {
        "images": count,
        "shape": "x".join(map(str, shape)),
        "turns": turns,
        "processor_s": round(whole.processor, 2),
        "processor_s_of_half": round(cheap.processor, 2),
        "processor_ms_a_sample": round(1000 * whole.processor / count, 4),
        "processor_ms_each_further_sample": round(1000 * further, 4),
        "processor_s_a_megapixel_of_rows": round(1e6 * whole.of_rows / (count * shape[1] * shape[2]), 4),
        "wall_s": round(whole.wall, 1),
        "with_mapped_file_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6),
        "bytes_over_plain": round(found[0][1][1], 3),
    }


@contextlib.contextmanager
def _ray() -> Any:
    """A Ray that is there before a delivery and stays."""
    import ray  # noqa: PLC0415  (an extra)

    ray.init(
        "local", _node_ip_address="127.0.0.1", include_dashboard=False,
        log_to_driver=False, logging_level=logging.ERROR,
    )  # fmt: skip
    try:
        yield
    finally:
        ray.shutdown()


def in_a_process(count: int, shape: Shape, engine: EngineName = "local") -> dict[str, Any]:
    """Measure apart, with a ledger that goes with the folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--one", folder, engine, str(count), *map(str, shape)]
        state = {**os.environ, "XDG_STATE_HOME": folder}
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=state) as process,
            MemoryWatch(process.pid, pause=0.5 if engine == "ray" else 0.05) as memory,
        ):
            told, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a delivery of {count:,} images failed")
    result: dict[str, Any] = json.loads(told.splitlines()[-1])
    result["own_memory_mb"] = round(memory.most / 1e6)
    print(result, flush=True)
    return result


def more_and_more(counts: Sequence[int], engine: EngineName) -> dict[str, Any]:
    """Deliveries of more and more images."""
    return {"results": [in_a_process(count, (3, 32, 32), engine) for count in counts]}


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
    if arguments.most < NUMBERS[0]:
        parser.error(f"--most is {NUMBERS[0]:,} or more")
    setting: dict[str, Any] = {"tile": TILE, "dtype": "int8"}
    counts = [count for count in NUMBERS if count <= arguments.most]
    if arguments.only in (None, "numbers"):
        write_result("scale_numbers", {**setting, **more_and_more(counts, "local")})
    if arguments.only in (None, "sizes"):
        sizes = [in_a_process(PIXELS // side**2, (3, side, side)) for side in SIDES]
        write_result("scale_sizes", {**setting, "results": sizes})
    if arguments.only in (None, "ray"):
        setting["rows_per_shard"] = ROWS_WITH_RAY
        write_result("scale_ray", {**setting, **more_and_more(counts, "ray")})


if __name__ == "__main__":
    main()
