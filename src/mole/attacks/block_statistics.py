"""What kappa > 1 gives away to somebody with public images: the core, by how blocks go together.

With kappa > 1 the same core stands on the diagonal several times, so the kappa means and kappa^2
covariances of blocks make more equations than the core has numbers. Whitening leaves only a rotation open,
and it is found by making all of them agree with those of public images. No kind of core withstands it, not
even a whitened one: that makes the covariance of all blocks together the identity, not that of each place.
"""

import math

import numpy as np

from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.blocks import Moments, RotationSearch, Whitened
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.scheme.shapes import Array

MOST_ELEMENTS = 3072  # of a sample that enter the covariance; of larger samples only a part does
MOST_PLACES = 256  # blocks of a sample that are compared with each other
MOST_ROWS = 8192
FEWEST_ROWS = 200
STARTS, STEPS = 6, 40
PRODUCTS = 2.5e11  # multiplications spent on climbing: about ten seconds
AT_MOST_IMAGES = 256


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Find the core's rotation from statistics of blocks, and undo it."""
    view = view.statistical
    _check(view)
    public = Whitened.of(view.to_blocks(np.asarray(view.public)[:MOST_ROWS]))
    morphed = Whitened.of(view.to_blocks(view.morphed[:MOST_ROWS]))
    places = _places(view)
    search = RotationSearch(Moments.of(public.blocks[:, places]), Moments.of(morphed.blocks[:, places]))
    rotation, agreement, starts = _best(search, rng)
    inverse = (morphed.whiten @ rotation.T @ public.colour).astype(np.float32)
    images = view.to_blocks(view.morphed[:AT_MOST_IMAGES]) @ inverse
    share = agreement / max(search.most, 1e-12)
    return Finding(
        words=(
            f"The same core morphs {view.kappa} blocks of every image, and how these go together differs "
            f"from place to place. Turning it until that agrees with public images (to {share:.0%}) gives "
            "a core, and with it every image, as far as that core is right."
        ),
        images=view.to_samples(images).astype(np.float32),
        unmorph=lambda blocks: blocks @ inverse,
        facts={
            "side of the core": view.block,
            "blocks compared": places.stop - places.start,
            "agreement with public images": round(share, 4),
            "starts": starts,
            "rows": len(morphed.blocks),
            "public images": len(public.blocks),
        },
    )


def _check(view: OutsiderView) -> None:
    if view.kappa == 1:
        raise NotApplicableError("with kappa = 1 a sample is one block, and there are no blocks to compare")
    view.similar(FEWEST_ROWS, "to see how their blocks go together")
    if 2 * view.block > MOST_ELEMENTS:
        raise NotApplicableError(
            f"a core of side {view.block} takes too long here: {MOST_ELEMENTS // 2} is the limit"
        )


def _places(view: OutsiderView) -> slice:
    """The blocks that are compared: all of them, or as many from the middle of a sample as time allows.

    Crops from all over an image are alike from place to place: there, trying more starts finds more than
    comparing more blocks.
    """
    count = min(view.kappa, MOST_PLACES, MOST_ELEMENTS // view.block)
    if view.blocks_of_whole is not None:
        affordable = math.isqrt(int(PRODUCTS / (2 * view.block**3 * STEPS * STARTS)))
        count = min(count, max(2, affordable))
    start = (view.kappa - count) // 2
    return slice(start, start + count)


def _best(search: RotationSearch, rng: np.random.Generator) -> tuple[Array, float, int]:
    """The rotation that agrees best, found from several starts if time allows."""
    pairs, side, _ = search.public.covariances.shape
    steps = int(PRODUCTS / (2 * pairs * side**3 + 20 * side**3))
    starts = int(np.clip(steps // STEPS, 1, STARTS))
    best: tuple[Array, float] = np.empty((0, 0)), -np.inf
    for start in range(starts):
        weights: Array = rng.normal(size=(pairs,)) if start else np.ones(pairs)
        climbed = search.climb(search.start(weights), max(5, min(STEPS, steps)))
        best = climbed if climbed[1] > best[1] else best
    return *best, starts


ATTACK = Attack(
    name="block-statistics",
    title="Statistics of blocks",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: the published bound for kappa > 1 counts guesses of the core only",
    advice="",
    helps={
        Measure.KAPPA_ONE: "Use kappa = 1: a larger kappa repeats the core, and repetition gives it away, "
        "whitened or not."
    },
)
