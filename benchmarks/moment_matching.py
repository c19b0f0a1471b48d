"""How matching of higher moments grows with the number of images that one core has seen.

CIFAR-10 (--images FILE.npz with x_train, y_train, x_test, y_test) in grey at several sizes, whitened core,
kappa = 1: half of it private, the other half public. For each number of private images the share of 500
that are picked out, with labels and without; and where nothing should be found: with labels shuffled and
nothing else used, and with public images of another kind.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mole
from common import write_result
from mole.attacks.moment_matching import match_moments
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.views import OutsiderView
from mole.audit.scoring import Truth, score
from mole.scheme.shapes import Array
from mole.sources.bundled import fashion_mnist

HALF, PICKED = 30_000, 500
SETTINGS = ((8, 1_280), (8, 6_400), (8, 30_000), (16, 5_120), (16, 30_000))
CONTROLLED = (16, 30_000)  # the setting that is tried with shuffled labels and other images as well


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, required=True, help=".npz with CIFAR-10")
    images, labels = load(parser.parse_args().images)
    settings: list[dict[str, Any]] = []
    for side, count in SETTINGS:
        small = shrunk(images, side)
        settings += tried(small[:count], small[HALF:], labels[:count], labels[HALF:], side)
        write_result("moment_matching", {"images": "CIFAR-10, grey", "among": PICKED, "settings": settings})


def load(path: Path) -> tuple[Array, npt.NDArray[np.int64]]:
    """Grey images, (60000, 32, 32) between 0 and 1, in a fixed random order, and their classes."""
    with np.load(path) as arrays:
        pixels = np.concatenate([arrays["x_train"], arrays["x_test"]])
        labels = np.concatenate([arrays["y_train"].reshape(-1), arrays["y_test"].reshape(-1)])
    order = np.random.default_rng(1).permutation(len(pixels))
    grey = pixels.astype(np.float32).mean(axis=-1) / 255
    return grey[order], labels[order].astype(np.int64)


def shrunk(images: Array, side: int) -> Array:
    """Images, (n, h, w), as (n, 1, side, side)."""
    step = images.shape[1] // side
    small: Array = images.reshape(len(images), 1, side, step, side, step).mean(axis=(3, 5))
    return small


def tried(
    private: Array,
    public: Array,
    labels: npt.NDArray[np.int64],
    public_labels: npt.NDArray[np.int64],
    side: int,
) -> list[dict[str, Any]]:
    """What is picked out of one setting."""
    key = mole.MorphKey.generate(private.shape[1:], core="whitened", sample=private)
    common: dict[str, Any] = {"morphed": mole.morph(private, key), "kappa": 1}
    both: dict[str, Any] = {"labels": labels, "public_labels": public_labels}
    views = {
        "with labels": OutsiderView(**common, public=public, **both),
        "without labels": OutsiderView(**common, public=public),
    }
    if (side, len(private)) == CONTROLLED:
        shuffled = both | {"labels": np.random.default_rng(3).permutation(labels)}
        other = clothes(side)
        views |= {
            "labels alone": OutsiderView(**common, public=public, **both),
            "labels alone, shuffled": OutsiderView(**common, public=public, **shuffled),
            "labels shuffled": OutsiderView(**common, public=public, **shuffled),
            "public images of another kind": OutsiderView(
                **common, public=other[0], labels=labels, public_labels=other[1]
            ),
        }
    return [picked_out(what, view, private) for what, view in views.items()]


def clothes(side: int) -> tuple[Array, npt.NDArray[np.int64]]:
    """Fashion-MNIST, padded to 32x32 and shrunk."""
    bundled = fashion_mnist()
    pixels = np.concatenate([bundled["x_public"], bundled["x_private"]]).astype(np.float32) / 255
    labels = np.concatenate([bundled["y_public"], bundled["y_private"]]).astype(np.int64)
    return shrunk(np.pad(pixels, ((0, 0), (2, 2), (2, 2))), side), labels


def picked_out(what: str, view: OutsiderView, private: Array) -> dict[str, Any]:
    """The share of images that lie nearest to their own original."""
    start = time.perf_counter()
    found = match_moments(view, np.random.default_rng(0), labels_alone="alone" in what)
    images = view.to_samples(found.undo(view.to_blocks(view.morphed[:PICKED])))
    measured = score(Finding("", images=images), Truth(private))
    return {
        "tried": what,
        "q": view.block,
        "n": len(private),
        "n over q": round(len(private) / view.block, 1),
        "picked out": measured.reidentified,
        "correlation": round(measured.correlation or 0.0, 3),
        "agreement": round(found.agreement, 3),
        "seconds": round(time.perf_counter() - start, 1),
    }


if __name__ == "__main__":
    main()
