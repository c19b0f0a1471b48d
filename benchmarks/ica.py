"""How large a core has to be before independent components no longer give images away.

For each side q of the core: correlation of rebuilt with original images and re-identification among 256, by
independent components, by the statistics of blocks, and by a rotation drawn at random in their place (which
is what comes of knowing nothing but block by block how much there is to see). Fashion-MNIST comes with the
package; with --images FILE.npz (uint8 images, n x 32 x 32 x 3) it runs on those as well.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import write_result
from mole.attacks import block_statistics, independent_components
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.blocks import Whitened, nearest_rotation
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Morphing, orthogonal_core, whitened_core
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array
from mole.scheme.whitening import Whitening
from mole.sources.bundled import fashion_mnist

ROWS = 3000
LARGEST = 128
SIDES = {"fashion-mnist": (2, 4, 7, 14, 16, 28, 56, 112), "images": (2, 4, 8, 16, 32, 64, 128, 256)}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help=".npz with uint8 images, n x 32 x 32 x 3")
    arguments = parser.parse_args()
    images = fashion_mnist()
    grey = images["x_private"][:, np.newaxis], images["x_public"][:, np.newaxis]
    rows = measure_all("fashion-mnist", *grey, SIDES["fashion-mnist"])
    if arguments.images is not None:
        with np.load(arguments.images) as data:
            name = max(data.files, key=lambda name: data[name].size)
            colour = data[name][: 2 * ROWS].transpose(0, 3, 1, 2)
        rows += measure_all(arguments.images.stem, colour[:ROWS], colour[ROWS:], SIDES["images"])
    write_result("ica", {"rows": ROWS, "public": ROWS, "among": 256, "results": rows})


def measure_all(name: str, private: Array, public: Array, sides: tuple[int, ...]) -> list[dict[str, Any]]:
    """Every side and kind of core on one data set."""
    mean, std = private.mean(axis=(0, 2, 3)) / 255, private.std(axis=(0, 2, 3)) / 255
    look = Normalisation(tuple(mean), tuple(std))
    plain, known = look.apply(private), look.apply(public)
    results = []
    for side in sides:
        for core in ("orthogonal", "whitened"):
            view = OutsiderView(
                morphed=morphing(plain, side, core).morph(plain), kappa=plain[0].size // side, public=known
            )
            found = {
                how: measure(attack, view, Truth(plain, look))
                for how, attack in (
                    ("independent_components", without_limit),
                    ("statistics_of_blocks", block_statistics.run),
                    ("random_rotation", random_rotation),
                )
            }
            results.append({"images": name, "q": side, "core": core, **found})
            print(results[-1], flush=True)
    return results


def morphing(plain: Array, side: int, core: str) -> Morphing:
    """A core of any side; keys refuse the smallest."""
    layout = Layout.of("rows", plain.shape[1:], plain[0].size // side)
    normal = np.random.default_rng(side).normal(size=(side, side))
    whitening = Whitening.estimate(layout.to_blocks(plain)) if core == "whitened" else None
    made = orthogonal_core(normal) if whitening is None else whitened_core(normal, whitening)
    return Morphing(layout, made)


def without_limit(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """The attack beyond its own limit, up to where it takes minutes."""
    if view.block > LARGEST:
        raise NotApplicableError(f"takes minutes: not tried above {LARGEST}")
    return independent_components.rebuild(view, rng)


def random_rotation(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Both sides whitened, and a rotation drawn at random where an attack would find one."""
    public = Whitened.of(view.to_blocks(np.asarray(view.public)))
    morphed = Whitened.of(view.to_blocks(view.morphed))
    rotation = nearest_rotation(rng.normal(size=(view.block, view.block)))
    images = morphed.blocks[:256] @ (rotation @ public.colour).astype(np.float32)
    return Finding(words="", images=view.to_samples(images))


def measure(
    attack: Callable[[OutsiderView, np.random.Generator], Finding], view: OutsiderView, truth: Truth
) -> dict[str, float | None] | str:
    """Correlation, re-identification and seconds of one attack."""
    start = time.perf_counter()
    try:
        found = attack(view, np.random.default_rng(0))
    except NotApplicableError as error:
        return str(error)
    seconds = time.perf_counter() - start
    measured = score(found, truth)
    return {
        "correlation": round(measured.correlation or 0.0, 3),
        "reidentified": round(measured.reidentified or 0.0, 3),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()
