"""What a small core gives away beyond second-order statistics: the independent components of its blocks.

Whitening the blocks leaves only a rotation unknown, whatever the core. Independent components fix it up to
order and sign, and those show in their distribution and in their strength at each place of the image.

Measured with 3,000 morphed and 3,000 public images (`benchmarks/results/ica.json`), on orthogonal and
whitened cores alike: with q up to 16 every image is rebuilt well enough to pick it out among 256, with
correlations of 1.0 on Fashion-MNIST and 0.86 or more on CIFAR-10. From q = 28 to 128 it gets worse but does
not stop: correlations are 0.45 to 0.85 and half of the images or more are picked out, where a random
rotation picks out 3 %. With tiles of 8x8 pixels in colour, q = 192, all of them are picked out
(`benchmarks/results/tiles_attacks.json`).
"""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.blocks import Whitened, nearest_rotation
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.errors import MissingExtraError
from mole.scheme.shapes import Array

MOST_SIDE = 192  # which takes about half a minute
BLOCKS_PER_SIDE = 20
MOST_BLOCKS = 20_000  # whose components are sought
MOST_ROWS = 4096
ITERATIONS = 100
QUANTILES = np.linspace(0.01, 0.99, 33)
AT_MOST_IMAGES = 256


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Rebuild images from independent components, unless that takes too long."""
    if view.block > MOST_SIDE:
        raise NotApplicableError(
            f"independent components of blocks of {view.block:,} elements take too long to find: "
            f"{MOST_SIDE:,} is the limit here"
        )
    return rebuild(view.statistical, rng)


def rebuild(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Find the independent components of morphed and of public blocks, match them, and rebuild images."""
    public, morphed = (
        Whitened.of(_enough(view, samples, what))
        for samples, what in ((view.similar(), "public images"), (view.morphed, "morphed rows"))
    )
    ours, theirs = (_independent(some.blocks, rng) for some in (public, morphed))
    match, signs, misfit = _match(_profile(public.blocks, ours), _profile(morphed.blocks, theirs))
    rotation = ours.T @ (signs[:, np.newaxis] * theirs[match])
    inverse = (morphed.whiten @ rotation.T @ public.colour).astype(np.float32)
    images = view.to_blocks(view.morphed[:AT_MOST_IMAGES]) @ inverse
    return Finding(
        words=(
            f"Blocks of {view.block:,} elements were taken apart into independent components, and each was "
            "matched with the one most like it in public images (typical difference "
            f"{misfit:.2f} standard deviations). The images are as good as these matches."
        ),
        images=view.to_samples(images).astype(np.float32),
        unmorph=lambda blocks: blocks @ inverse,
        facts={
            "q": view.block,
            "blocks, morphed": morphed.blocks.shape[0] * view.kappa,
            "blocks, public": public.blocks.shape[0] * view.kappa,
            "typical difference of matched components": round(misfit, 4),
        },
    )


def _enough(view: OutsiderView, samples: Array, what: str) -> Array:
    blocks = view.to_blocks(samples[:MOST_ROWS])
    count, fewest = len(blocks) * view.kappa, BLOCKS_PER_SIDE * view.block
    if count < fewest:
        raise NotApplicableError(
            f"{count:,} blocks of {what} are too few to find {view.block:,} independent components: it "
            f"takes {fewest:,} or more"
        )
    return blocks


def _independent(blocks: Array, rng: np.random.Generator) -> Array:
    """Directions, (q, q), along which whitened blocks are as independent as can be, one per row."""
    side = blocks.shape[-1]
    if side == 1:
        return np.ones((1, 1))
    rows = blocks.reshape(-1, side)
    chosen = rng.permutation(len(rows))[:MOST_BLOCKS]
    solver = _fast_ica()(
        side, whiten="unit-variance", max_iter=ITERATIONS, tol=1e-3, random_state=int(rng.integers(1 << 31))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns if it did not settle, and the matches show that anyway
        solver.fit(rows[chosen].astype(np.float64))
    return nearest_rotation(np.asarray(solver.components_, np.float64))


def _fast_ica() -> Any:
    try:
        from sklearn.decomposition import FastICA  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("independent components need scikit-learn", "audit") from None
    return FastICA


def _profile(blocks: Array, directions: Array) -> tuple[Array, Array, Array]:
    """What is known of each component: its distribution, and its mean and spread at each place."""
    components = blocks @ directions.T.astype(blocks.dtype)
    values = components.reshape(-1, len(directions))
    distribution = np.quantile(values[:: max(1, len(values) // MOST_BLOCKS)], QUANTILES, axis=0).T
    return distribution, components.mean(axis=0).T, components.std(axis=0).T


def _match(
    own: tuple[Array, Array, Array], found: tuple[Array, Array, Array]
) -> tuple[npt.NDArray[np.intp], Array, float]:
    """For each public component the morphed one most like it, its sign, and how much they differ."""
    spread = _squared(own[2], found[2])
    as_is = _squared(own[0], found[0]) + _squared(own[1], found[1]) + spread
    turned = _squared(own[0], -found[0][:, ::-1]) + _squared(own[1], -found[1]) + spread
    rows, match = linear_sum_assignment(np.minimum(as_is, turned))
    signs = np.where(turned[rows, match] < as_is[rows, match], -1.0, 1.0)
    return match.astype(np.intp), signs, float(np.sqrt(np.median(np.minimum(as_is, turned)[rows, match])))


def _squared(own: Array, found: Array) -> Array:
    """Mean squared difference of every row with every other."""
    difference: Array = cdist(own, found, "sqeuclidean") / own.shape[1]
    return difference


ATTACK = Attack(
    name="ica-small-cores",
    title="Independent components of small blocks",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: independent component analysis, which a whitened core does not stop",
    advice="",
    helps={
        Measure.KAPPA_ONE: "Use kappa = 1: no core of up to 192 elements withstands it, whitened or not."
    },
)
