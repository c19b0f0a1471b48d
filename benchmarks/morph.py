"""How fast data is morphed in memory, against a bare matrix product of the same size in the same run.

The cost should fall with kappa as kappa q^2 does: kappa times fewer products a sample. Tiles have to be cut
out and put back as well, which the bare product does not count. The two are measured in turns, and every
turn gives a share: their median is told, and how far they spread. Before each there is a rest: threads of
the linear algebra library keep a processor busy for a while after a product, waiting for the next.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mole
from common import summary, write_result
from mole.scheme.shapes import shape_text
from vgg import INPUT_SHAPE

ELEMENTS = 4096 * 3072
ROUNDS = 15
REST = 0.2  # seconds
KAPPAS = (1, 2, 3, 6, 12, 24, 48)
LARGE = (3, 224, 224)
TILES = ((INPUT_SHAPE, 4), (INPUT_SHAPE, 8), (LARGE, 8), (LARGE, 16), (LARGE, 32))


def main() -> None:
    """Run the benchmark."""
    kappas = [
        {"kappa": kappa, **measured(mole.MorphKey.generate(INPUT_SHAPE, kappa=kappa))} for kappa in KAPPAS
    ]
    for result in kappas:
        faster = kappas[0]["morph"]["median_s"] / result["morph"]["median_s"]
        result["times_faster_than_kappa_1"] = round(faster, 1)
    tiles = [
        {"images": shape_text(shape), "tile": tile, **measured(mole.MorphKey.generate(shape, tile=tile))}
        for shape, tile in TILES
    ]
    size = f"{ELEMENTS // 3072} images of 3x32x32, or as many numbers, float32"
    write_result("morph", {"size": size, "rounds": ROUNDS, "kappas": kappas, "tiles": tiles})


def measured(key: mole.MorphKey) -> dict[str, Any]:
    """Morphing with a key, and the bare product, in turns."""
    samples = ELEMENTS // np.prod(key.input_shape)
    batch = np.random.default_rng(0).normal(size=(samples, *key.input_shape)).astype(np.float32)
    core = key.morphing.core.matrix.astype(np.float32)
    blocks = batch.reshape(-1, len(core))
    morph, bare = [], []
    for _ in range(ROUNDS + 1):
        morph.append(seconds(lambda: mole.morph(batch, key)))
        bare.append(seconds(lambda: blocks @ core))
    ours, limit = summary(morph[1:]), summary(bare[1:])
    shares = sorted(limit / ours for ours, limit in zip(morph[1:], bare[1:], strict=True))
    return {
        "multiplications_per_sample": key.kappa * len(core) ** 2,
        "images_per_s": round(samples / ours["median_s"]),
        "share_of_bare_product": round(statistics.median(shares), 3),
        "middle_half_of_shares": [round(shares[len(shares) * part // 4], 3) for part in (1, 3)],
        "morph": ours,
        "bare_product": limit,
    }


def seconds(work: Callable[[], object]) -> float:
    """How long it takes after a rest; what it gives is let go afterwards."""
    time.sleep(REST)
    start = time.perf_counter()
    result = work()
    took = time.perf_counter() - start
    del result
    return took


if __name__ == "__main__":
    main()
