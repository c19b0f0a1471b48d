"""What tiles hide from a stranger who has similar images, and how many known images give the core.

Tiles of side 2, 4 and 8 on Fashion-MNIST with a border, 1x32x32, which comes with the package; with
--images FILE.npz (uint8, n x 32 x 32 x 3, x_train and y_train) on those as well. And tiles of 8 on
photographs of 3x224x224, as the audit attacks them: the middle of each alone, and crops from all over. A
control has a random rotation in the place of the one that an attack finds.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import mole
from common import write_result
from ica import random_rotation
from mole.attacks import block_statistics, independent_components, moment_matching
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.pair_solution import PairSolution
from mole.attacks.tools.views import OutsiderView
from mole.audit.crop import Crop, split_crops
from mole.audit.scoring import Truth, score
from mole.scheme.shapes import Array
from mole.sources.bundled import PRIVATE_PHOTOS, PUBLIC_PHOTOS, cut_outs, fashion_mnist

ROWS, PHOTOS = 3000, 400
TRIED_PAIRS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SOLVED = 0.05  # relative error on other images, up to which the core counts as found
ASIDE = 64  # images by which that is measured
Run = Callable[[OutsiderView, np.random.Generator], Finding]
Look = mole.Normalisation


class Images(NamedTuple):
    """Plain images, (n, channels, side, side), and their classes: the provider's, and other people's."""

    name: str
    look: Look
    private: Array
    public: Array
    labels: npt.NDArray[np.int64] | None = None
    public_labels: npt.NDArray[np.int64] | None = None


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help=".npz with uint8 images, n x 32 x 32 x 3")
    arguments = parser.parse_args()
    sets: list[tuple[Images, tuple[int, ...], tuple[str, ...]]] = [
        (bordered_fashion(), (2, 4, 8), ("orthogonal", "whitened"))
    ]
    if arguments.images is not None:
        sets.append((from_file(arguments.images), (4, 8), ("whitened",)))
    results = [
        measure_all(images, tile, core) for images, tiles, cores in sets for tile in tiles for core in cores
    ]
    photographs = [large(core) for core in ("orthogonal", "whitened")]
    sizes = {"rows": ROWS, "public": ROWS, "photographs": PHOTOS, "among": 256, "solved": SOLVED}
    write_result("tiles_attacks", {**sizes, "results": results, "large": photographs})


def bordered_fashion() -> Images:
    """Fashion-MNIST with a border of two pixels, so that tiles of 8 fit."""
    given, look = fashion_mnist(), Look((0.286,), (0.353,))
    border = ((0, 0), (0, 0), (2, 2), (2, 2))
    private, public = (
        look.apply(np.pad(given[name][:, np.newaxis], border)) for name in ("x_private", "x_public")
    )
    labels = [given[name].astype(np.int64) for name in ("y_private", "y_public")]
    return Images("fashion-mnist", look, private, public, *labels)


def from_file(path: Path) -> Images:
    """The first images of a file, half of them private."""
    look = Look((0.491, 0.482, 0.447), (0.247, 0.243, 0.262))
    with np.load(path) as data:
        images = look.apply(data["x_train"][: 2 * ROWS].transpose(0, 3, 1, 2))
        labels = data["y_train"][: 2 * ROWS].reshape(-1).astype(np.int64)
    return Images(path.stem, look, images[:ROWS], images[ROWS:], labels[:ROWS], labels[ROWS:])


def key_for(plain: Array, tile: int, core: str) -> mole.MorphKey:
    """A key; a whitened core has learned from the very images that are delivered."""
    sample = plain if core == "whitened" else None
    return mole.MorphKey.generate(
        plain.shape[1:], tile=tile, core=core, sample=sample, insecure_seed=bytes(32)
    )


def measure_all(images: Images, tile: int, core: str) -> dict[str, Any]:
    """Every attack on one data set, with one side of tiles and one kind of core."""
    key = key_for(images.private, tile, core)
    seen = OutsiderView(
        morphed=mole.morph(images.private, key), kappa=key.kappa, layout="tiles", public=images.public
    )
    labelled = replace(seen, labels=images.labels, public_labels=images.public_labels)
    truth = Truth(images.private, images.look)
    tried: Mapping[str, tuple[Run, OutsiderView]] = {
        "block-statistics": (block_statistics.run, seen),
        "ica-small-cores": (independent_components.rebuild, seen),
        "moment-matching": (moment_matching.run, seen),
        "moment-matching, labels": (moment_matching.run, labelled),
        "random rotation": (random_rotation, seen),
    }
    found = {name: measure(run, view, truth) for name, (run, view) in tried.items()}
    result = {
        "images": images.name, "tile": tile, "q": seen.block, "kappa": seen.kappa, "core": core, **found,
        "known-pairs": known_pairs(seen, images.private),
    }  # fmt: skip
    print(result, flush=True)
    return result


def measure(run: Run, view: OutsiderView, truth: Truth) -> dict[str, float]:
    """Correlation, re-identification and seconds of one attack."""
    start = time.perf_counter()
    found = run(view, np.random.default_rng(0))
    seconds = time.perf_counter() - start
    measured = score(replace(found, images=np.asarray(found.images)[:256]), truth)
    return {
        "correlation": round(measured.correlation or 0.0, 3),
        "reidentified": round(measured.reidentified or 0.0, 3),
        "seconds": round(seconds, 1),
    }


def known_pairs(view: OutsiderView, plain: Array) -> dict[str, Any]:
    """The error on other images against the number of known ones, and how many were enough."""
    errors = {}
    truth = view.to_blocks(plain[-ASIDE:]).astype(np.float64)
    morphed = view.to_blocks(view.morphed[-ASIDE:]).astype(np.float64).reshape(-1, view.block)
    for pairs in TRIED_PAIRS:
        known = (view.to_blocks(some[:pairs]).astype(np.float64) for some in (plain, view.morphed))
        solution = PairSolution(*(blocks.reshape(-1, view.block) for blocks in known))
        apart = np.linalg.norm(solution(morphed) - truth.reshape(-1, view.block))
        errors[str(pairs)] = float(f"{apart / np.linalg.norm(truth):.2g}")
    enough = next((pairs for pairs in TRIED_PAIRS if errors[str(pairs)] <= SOLVED), None)
    return {"counted": view.images_for_core, "enough": enough, "errors": errors}


def large(core: str) -> dict[str, Any]:
    """Cut-outs of six photographs, 3x224x224, half of them private, in tiles of 8."""
    look, shape = Look((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), (3, 224, 224)
    pixels = cut_outs(PRIVATE_PHOTOS + PUBLIC_PHOTOS, shape, 2 * PHOTOS, np.random.default_rng(5))
    plain, public = look.apply(pixels[:PHOTOS]), look.apply(pixels[PHOTOS:])
    key = key_for(plain, 8, core)
    crop = Crop.of("tiles", shape, key.kappa)
    if crop is None:
        raise SystemExit("images of this size are attacked as crops")
    count = crop.further(PHOTOS)
    (middle, further), (known, known_further) = (
        split_crops(crop.several(some, count)) for some in (mole.morph(plain, key), public)
    )
    alone = OutsiderView(
        morphed=middle, kappa=crop.kappa, layout="tiles", public=known, blocks_of_whole=key.kappa
    )
    truth = Truth(crop(plain), look)
    result = {
        "images": "photographs", "tile": 8, "core": core, "crops of an image": 1 + count,
        "middle alone": measure(block_statistics.run, alone, truth),
        "crops from all over": measure(
            block_statistics.run, replace(alone, further=further, public_further=known_further), truth
        ),
    }  # fmt: skip
    print(result, flush=True)
    return result


if __name__ == "__main__":
    main()
