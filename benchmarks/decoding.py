"""How fast a folder of images is delivered, against Pillow's own decoding of the same files.

The limit is Pillow alone: one thread for each processor, which reads files and decodes them to arrays. Then
the folder is delivered with small tiles, so that decoding is most of the work; its rate counts from the
first row to the last, with morphing and writing. Limit and delivery take turns; each turn gives a share.
Give --photos FOLDER with photographs; crops of them are used. Otherwise images are made up.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import mole
from common import write_result
from mole.provider.deliver import deliver

SIDES = (64, 224)
FORMATS = ("png", "jpg")
COUNT = 2000
ROUNDS = 3


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--less", type=int, default=1, help="so many times fewer images, and no result")
    parser.add_argument("--photos", type=Path, help="a folder with photographs, in it or below it")
    arguments = parser.parse_args()
    less, photos = arguments.less, arguments.photos
    results = [measured(side, kind, max(64, COUNT // less), photos) for side in SIDES for kind in FORMATS]
    if less > 1:
        print(*results, sep="\n")
        return
    pictures = "crops of photographs" if photos else "made up"
    write_result("decoding", {"pictures": pictures, "rounds": ROUNDS, "folders": results})


def measured(side: int, kind: str, count: int, photos: Path | None) -> dict[str, Any]:
    """Deliveries of one folder, and Pillow's decoding of it, in turns."""
    shape = (3, side, side)
    key = mole.MorphKey.generate(shape, tile=8)
    weight = np.random.default_rng(0).normal(size=(8, 3, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=shape, padding=1)
    rates, limits = [], []
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder) / "images", side, kind, count, photos)
        for _ in range(ROUNDS):
            limits.append(count / decoded(files))
            rates.append(count / delivered(Path(folder), layer, key))
            shutil.rmtree(Path(folder) / "out")
    shares = [rate / limit for rate, limit in zip(rates, limits, strict=True)]
    return {
        "images": f"{count} of {side}x{side}, {kind}",
        "images_per_s": round(statistics.median(rates)),
        "decoded_by_pillow_per_s": round(statistics.median(limits)),
        "share_of_decoding": round(statistics.median(shares), 3),
        "shares_of_each_round": [round(share, 3) for share in shares],
    }


def delivered(folder: Path, layer: mole.FirstLayer, key: mole.MorphKey) -> float:
    """Seconds from the first row of a delivery to the last."""
    marks: list[float] = []
    deliver(
        folder / "images", layer, key, folder / "out", dtype="int8", layer_dtype=None,
        progress=lambda done, total: marks.append(time.perf_counter()),
    )  # fmt: skip
    return marks[-1] - marks[0]


def written(folder: Path, side: int, kind: str, count: int, photos: Path | None) -> list[Path]:
    """A folder of square images: crops of photographs, or made up and neither flat nor noise."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    files = [folder / f"{index}.{kind}" for index in range(count)]
    found = sorted(photos.rglob("*.[jJ][pP]*[gG]")) if photos else []
    for index, file in enumerate(files):
        if found:
            with Image.open(found[index % len(found)]) as photo:
                whole = photo.convert("RGB")
            left, top = (int(rng.integers(0, max(1, length // 4))) for length in whole.size)
            image = whole.crop((left, top, whole.width, whole.height))
        else:
            image = Image.fromarray(rng.integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8))
        image.resize((side, side), Image.Resampling.BICUBIC).save(file)
    return files


def decoded(files: list[Path]) -> float:
    """Seconds that Pillow takes, on every processor."""

    def decode(file: Path) -> None:
        with Image.open(file) as image:
            np.asarray(image)

    start = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(decode, files):
            pass
    return time.perf_counter() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
