"""What a whitened core hides that learned from few images, against one who has similar public images.

Fashion-MNIST as it ships with the package, 28x28, q = 784: the provider delivers n images and learns from
them, and morphs 500 others later. The attacker ranks the directions in which morphed rows vary, exactly,
and takes them for those of public images: how well the ten strongest go with the truth (a correlation,
signs given away), for the best of them and on average; and how many nearest neighbours stay so.
"""

from typing import Any

import numpy as np

import mole
from common import write_result
from mole.attacks.pca_matching import ATTACK
from mole.attacks.tools.views import OutsiderView
from mole.audit.scoring import Truth, score
from mole.scheme.shapes import Array
from mole.sources.bundled import fashion_mnist

COUNTS = (100, 300, 800, 1500, 2400)
LATER, RANKS, PUBLIC = 500, 10, 1500


def main() -> None:
    """Run the benchmark."""
    images, look = fashion_mnist(), mole.Normalisation((0.286,), (0.353,))
    private, public = (look.apply(images[name][:, None]) for name in ("x_private", "x_public"))
    later, attackers, providers = private[-LATER:], public[:PUBLIC], public[PUBLIC:]
    rows = []
    for count in COUNTS:
        own = private[:count]
        samples = {"none (orthogonal)": None, "own": own}
        if count == COUNTS[0]:
            samples["own and public"] = np.concatenate([own, providers])
            samples["public"] = providers
        for what, sample in samples.items():
            rows.append(
                {"delivered": count, "learned from": what, **measure(own, later, attackers, sample)}
            )
            write_result("few_images", {"images": "Fashion-MNIST", "q": 784, "later": LATER, "rows": rows})


def measure(own: Array, later: Array, public: Array, sample: Array | None) -> dict[str, Any]:
    """What shows of delivered and of later images, and what it costs in precision."""
    core = "orthogonal" if sample is None else "whitened"
    key = mole.MorphKey.generate(own.shape[1:], core=core, sample=sample, insecure_seed=bytes(range(32)))
    shown = {
        name: seen(rows, mole.morph(rows, key), public)
        for name, rows in (("delivered", own), ("later", later))
    }
    return {
        "images": 0 if sample is None else len(sample),
        "shrinkage": None if key.learnt is None else round(key.learnt.shrinkage, 4),
        "condition": round(key.morphing.core.condition, 1),
        **{f"{name} images": values for name, values in shown.items()},
        **{f"error of later images, {dtype}": error(later, key, dtype) for dtype in ("float32", "int8")},
    }


def seen(plain: Array, morphed: Array, public: Array) -> dict[str, float]:
    """How the ten strongest directions of morphed rows go with those of public images, and neighbours."""
    ours, theirs = strongest(public), strongest(morphed)
    true, found = (flat(rows) @ axes.T for rows, axes in ((plain, ours), (morphed, theirs)))
    together = [abs(float(np.corrcoef(true[:, i], found[:, i])[0, 1])) for i in range(RANKS)]
    view = OutsiderView(morphed=morphed, kappa=1, public=public)
    picked = score(ATTACK.run(view, np.random.default_rng(0)), Truth(plain)).reidentified
    return {
        "best component": round(max(together), 2),
        "mean of ten components": round(float(np.mean(together)), 2),
        "neighbours": round(float((nearest(plain) == nearest(morphed)).mean()), 2),
        "picked out": round(picked or 0.0, 3),
    }


def flat(images: Array) -> Array:
    """Rows about their mean, in 64 bits."""
    rows = images.reshape(len(images), -1).astype(np.float64)
    centred: Array = rows - rows.mean(axis=0)
    return centred


def strongest(images: Array) -> Array:
    """The directions in which images vary most: (10, elements)."""
    axes: Array = np.linalg.svd(flat(images), full_matrices=False)[2][:RANKS]
    return axes


def nearest(images: Array) -> Array:
    """Which other image is nearest to each."""
    rows = flat(images)
    squares = np.square(rows).sum(axis=1)
    distances = squares[:, None] + squares - 2 * rows @ rows.T
    np.fill_diagonal(distances, np.inf)
    neighbours: Array = distances.argmin(axis=1)
    return neighbours


def error(images: Array, key: mole.MorphKey, dtype: str) -> float:
    """Relative error of images that were morphed, stored and recovered."""
    morphed = mole.morph(images, key)
    if dtype == "int8":
        scales = np.abs(morphed).max(axis=0) / 127
        morphed = (np.rint(morphed / scales) * scales).astype(np.float32)
    back = mole.unmorph(morphed, key)
    return float(f"{np.linalg.norm(back - images) / np.linalg.norm(images):.2g}")


if __name__ == "__main__":
    main()
