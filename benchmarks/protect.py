"""What clip and noise cost beside the front: protected rows against bare features, in the same run.

Both run the same front in a process of one thread, in turns; every turn gives a share, and their median is
told with how far they spread. Asked for: protected rows at 90 % of the front's own rate or more. Give
--front with a front of your own to measure that one besides.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common import summary, write_result
from mole.protection.certificate import Certificate
from mole.protection.front_file import Front, read_front
from mole.protection.front_runner import FrontRunner
from mole.protection.terms import Protection
from mole.provider.protector import Protector
from mole.scheme.shapes import Shape, shape_text
from mole.torch.front import make_front
from mole.torch.networks import build_network

FRONTS: tuple[tuple[str, Shape, int], ...] = (
    ("small_vgg", (3, 32, 32), 128),
    ("small_resnet", (3, 96, 96), 64),
)
BITS = 1.0
ROUNDS = 15
NUMBERS = 1 << 21  # of images, in each round


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--front", type=Path, help="a front of your own")
    given = parser.parse_args().front
    with tempfile.TemporaryDirectory() as folder:
        fronts = [
            (name, made(name, shape, features, Path(folder) / f"{name}.onnx"))
            for name, shape, features in FRONTS
        ]
        if given is not None:
            fronts.append((given.stem, read_front(given)))
        results = [{"network": name, **measured(front)} for name, front in fronts]
    write_result("protect", {"bits": BITS, "rounds": ROUNDS, "threads": 1, "fronts": results})


def made(name: str, shape: Shape, features: int, path: Path) -> Front:
    """A front of a network that learned nothing: it takes as long as one that did."""
    torch.manual_seed(0)
    network = build_network(name, shape, 10)
    last = 2 if name == "small_vgg" else 1  # a dropout stands before the last layer of the one
    images = np.random.default_rng(0).normal(size=(2 * features, *shape)).astype(np.float32)
    return make_front(network[:-last], images, path, dimensions=features)  # type: ignore[index]


def measured(front: Front) -> dict[str, Any]:
    """Features alone, and protected rows, in turns."""
    count = NUMBERS // int(np.prod(front.input_shape))
    images = np.random.default_rng(1).normal(size=(count, *front.input_shape)).astype(np.float32)
    certificate = Certificate.for_bits(BITS, features=front.dimensions)
    terms = Protection(front.digest, {"train": certificate})
    protected, bare = [], []
    with FrontRunner(front, threads=1) as run, Protector(front, terms) as protector:
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            protector.rows(images, "train")
            middle = time.perf_counter()
            run(images)
            bare.append(time.perf_counter() - middle)
            protected.append(middle - start)
    shares = sorted(limit / ours for ours, limit in zip(protected[1:], bare[1:], strict=True))
    ours = summary(protected[1:])
    return {
        "images": shape_text(front.input_shape),
        "features": front.dimensions,
        "images_a_round": count,
        "images_per_s": round(count / ours["median_s"]),
        "share_of_the_front_alone": round(statistics.median(shares), 3),
        "middle_half_of_shares": [round(shares[len(shares) * part // 4], 3) for part in (1, 3)],
        "protected_rows": ours,
        "front_alone": summary(bare[1:]),
    }


if __name__ == "__main__":
    main()
