"""How long a look at a whole source takes, against decoding it, which finding a fault took before.

2,000 images of the size of ImageNet's, with five different problems among them. Both are measured in the
same run, in turns; the processor's time is given too, which other work on the machine disturbs less.
"""

import io
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from common import summary, write_result
from mole.sources.inspection import Inspection, inspect
from mole.sources.opening import open_source
from mole.sources.plain_samples import read_many
from mole.sources.preparation import Preparation
from mole.sources.source import Source

COUNT, SIDE, DIFFERENT = 2000, 224, 20
ROUNDS = 3


def main() -> None:
    """Run the benchmark."""
    preparation = Preparation((3, SIDE, SIDE))
    times: dict[str, list[float]] = {"look": [], "decode": [], "look_cpu": [], "decode_cpu": []}
    with tempfile.TemporaryDirectory() as folder:
        _plant(Path(folder))
        for _ in range(ROUNDS):
            source = open_source(folder)
            found = _timed(times, "look", partial(inspect, source, preparation))
            _timed(times, "decode", partial(_decode, source, preparation))
    looked, decoded = summary(times["look"]), summary(times["decode"])
    write_result(
        "inspection",
        {
            "size": f"{COUNT} images of 3x{SIDE}x{SIDE}, half JPEG and half PNG",
            "problems_found": len(found.problems),
            "look": looked,
            "decode": decoded,
            "look_processor_s": min(times["look_cpu"]),
            "decode_processor_s": min(times["decode_cpu"]),
            "times_faster_than_decoding": round(min(times["decode_cpu"]) / min(times["look_cpu"]), 1),
        },
    )


def _plant(folder: Path) -> None:
    """Images, and among them one of another size, a grey one, one cut off, an empty file and a GIF."""
    rng = np.random.default_rng(0)
    smooth = rng.integers(0, 256, (DIFFERENT, 14, 14, 3), dtype=np.uint8).repeat(16, 1).repeat(16, 2)
    files = [_encoded(image, form) for form in ("JPEG", "PNG") for image in smooth]
    for index in range(COUNT - 1):
        suffix = "jpg" if index % len(files) < DIFFERENT else "png"
        (folder / f"{index:04}.{suffix}").write_bytes(files[index % len(files)])
    (folder / "0000.jpg").write_bytes(_encoded(smooth[0, :100], "JPEG"))
    (folder / "0001.jpg").write_bytes(_encoded(smooth[0, ..., 0], "JPEG"))
    (folder / "0002.jpg").write_bytes(files[2][:-300])
    (folder / "0003.jpg").write_bytes(b"")
    (folder / "0.gif").write_bytes(b"GIF89a")


def _encoded(pixels: Any, form: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def _timed(times: dict[str, list[float]], name: str, work: Callable[[], Any]) -> Any:
    start, busy = time.perf_counter(), time.process_time()
    result: Inspection | None = work()
    times[name].append(time.perf_counter() - start)
    times[f"{name}_cpu"].append(round(time.process_time() - busy, 3))
    return result


def _decode(source: Source, preparation: Preparation) -> None:
    for split in source.splits.values():
        read_many(preparation, split, range(len(split)), skip_bad=True)


if __name__ == "__main__":
    main()
