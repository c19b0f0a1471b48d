"""How fast data is morphed in memory, against a bare matrix product of the same size in the same run.

The cost should fall with kappa as kappa q^2 does: kappa times fewer products a sample.
"""

import time
from typing import Any

import numpy as np

import mole
from common import summary, write_result
from vgg import INPUT_SHAPE

SAMPLES = 4096
ROUNDS = 7
KAPPAS = (1, 2, 3, 6, 12, 24, 48)


def main() -> None:
    """Run the benchmark."""
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(SAMPLES, *INPUT_SHAPE)).astype(np.float32)
    rows = batch.reshape(SAMPLES, -1)
    results: list[dict[str, Any]] = []
    for kappa in KAPPAS:
        key = mole.MorphKey.generate(INPUT_SHAPE, kappa=kappa)
        core = key.morphing.core.matrix.astype(np.float32)
        blocks = rows.reshape(-1, len(core))
        morph, bare = [], []
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            mole.morph(batch, key)
            middle = time.perf_counter()
            _ = blocks @ core
            bare.append(time.perf_counter() - middle)
            morph.append(middle - start)
        ours, limit = summary(morph[1:]), summary(bare[1:])
        results.append(
            {
                "kappa": kappa,
                "multiplications_per_sample": kappa * len(core) ** 2,
                "images_per_s": round(SAMPLES / ours["median_s"]),
                "share_of_bare_product": round(limit["median_s"] / ours["median_s"], 3),
                "morph": ours,
                "bare_product": limit,
            }
        )
    first = results[0]["morph"]["median_s"]
    for result in results:
        result["times_faster_than_kappa_1"] = round(first / result["morph"]["median_s"], 1)
    write_result("morph", {"size": f"{SAMPLES} images of 3x32x32, float32", "kappas": results})


if __name__ == "__main__":
    main()
