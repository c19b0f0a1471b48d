"""How long it takes to build the augmented layer at CIFAR/VGG-16 size, against the paper's product.

The paper multiplies M^-1 by the dense matrix C. Here C is given, and so is M^-1: both sides are timed from
there, in one process, and both allocate their result. A plain torch convolution of M^-1 is measured for
comparison, and copying the result once as the limit that memory sets. Peak memory is that of a process of
its own, and includes making the key. `augmented_forward.py` has the layer in two factors.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import mole
from common import summary, write_result
from mole.scheme.layer_matrix import layer_matrix
from mole.scheme.shapes import Array
from vgg import INPUT_SHAPE, vgg_layer

ROUNDS = 5


def peak_memory() -> dict[str, float]:
    """Peak resident memory of a process that generates a key and builds the layer, against the result."""
    program = "import vgg; vgg.report_memory_of_augmenting()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    result, peak = map(int, done.stdout.split())
    return {
        "result_mb": round(result / 1e6),
        "peak_mb": round(peak / 1e6),
        "peak_over_result": round(peak / result, 2),
    }


def timed(work: Callable[[], object]) -> dict[str, float]:
    """Seconds of a few repeats in a row, after one that does not count.

    The first one meets memory that the system has yet to provide, which says more about the system.
    """
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return summary(times[1:])


def torch_convolution(inverse: Array, layer: mole.FirstLayer) -> torch.Tensor:
    """The same result (but for the shuffle) by PyTorch."""
    images = torch.from_numpy(inverse).reshape(-1, *INPUT_SHAPE)
    return torch.nn.functional.conv2d(images, torch.from_numpy(layer.weight), padding=1)


def main() -> None:
    """Run the benchmark."""
    layer = vgg_layer()
    start = time.perf_counter()
    key = mole.MorphKey.generate(INPUT_SHAPE)
    key_seconds = time.perf_counter() - start

    inverse = key.morphing.core.inverse.astype(np.float32)
    dense = layer_matrix(layer)
    source = np.ones((inverse.shape[0], dense.shape[1]), np.float32)
    summaries = {
        "augment": timed(lambda: mole.augment(layer, key, form="dense")),
        "paper_dense_product": timed(lambda: inverse @ dense),
        "copy_of_the_result": timed(source.copy),
        "torch_convolution": timed(lambda: torch_convolution(inverse, layer)),
    }
    ours = summaries["augment"]["median_s"]
    write_result(
        "augment",
        {
            "size": "3x32x32 input, 64 channels, 3x3 kernel, padding 1, kappa 1, float32",
            "seconds": summaries,
            "times_faster_than_paper_dense_product": round(
                summaries["paper_dense_product"]["median_s"] / ours, 1
            ),
            "times_faster_than_torch_convolution": round(
                summaries["torch_convolution"]["median_s"] / ours, 1
            ),
            "generate_key_s": round(key_seconds, 2),
            "memory": peak_memory(),
        },
    )


if __name__ == "__main__":
    main()
