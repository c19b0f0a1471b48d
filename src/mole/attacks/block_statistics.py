"""What kappa > 1 gives away to somebody with public images: the core, by how blocks go together.

With kappa > 1 the same core stands several times on the diagonal, so the kappa means and kappa^2
covariances of blocks hold more equations than the core has numbers. Only a rotation is left open, and it is
found by letting all of them agree with those of public images. It takes every kind of core, whitened ones
included: whitening makes the blocks' common covariance the identity, not that of any one place or two.
"""

import numpy as np

from mole.attacks.tools.attack import OUTSIDER, Attack, Finding
from mole.attacks.tools.blocks import Moments, RotationSearch, Whitened
from mole.attacks.tools.views import MissingInputError, NotApplicableError, OutsiderView
from mole.scheme.shapes import Array

MOST_ELEMENTS = 3072  # of a sample, whose covariance is taken: of larger ones a part
MOST_PLACES = 256  # in a sample, that are compared with each other
MOST_ROWS = 8192
FEWEST_ROWS = 200
STARTS, STEPS = 6, 40
PRODUCTS = 2.5e11  # multiplications spent on climbing, some ten seconds
AT_MOST_IMAGES = 256


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Find the core's rotation by the statistics of blocks, and turn it back."""
    _check(view)
    public = Whitened.of(view.to_blocks(np.asarray(view.public)[:MOST_ROWS]))
    morphed = Whitened.of(view.to_blocks(view.morphed[:MOST_ROWS]))
    places = _places(view)
    search = RotationSearch(Moments.of(public.blocks[:, places]), Moments.of(morphed.blocks[:, places]))
    rotation, agreement, starts = _best(search, rng)
    inverse = morphed.whiten @ rotation.T @ public.colour
    images = view.to_blocks(view.morphed[:AT_MOST_IMAGES]) @ inverse.astype(np.float32)
    share = agreement / max(search.most, 1e-12)
    return Finding(
        words=(
            f"The same core morphs {view.kappa} blocks of every image, and how these go together differs "
            f"from place to place. Turning it until that agrees with public images (to {share:.0%}) gives "
            "a core, and with it every image, as far as that core is right."
        ),
        images=view.to_samples(images).astype(np.float32),
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
    if view.public is None:
        raise MissingInputError("there are no public images to compare the morphed data with")
    fewest = min(len(view.public), len(view.morphed))
    if fewest < FEWEST_ROWS:
        raise NotApplicableError(
            f"{fewest} images are too few to see how their blocks go together: it takes {FEWEST_ROWS} or "
            "more, morphed and public"
        )
    if 2 * view.block > MOST_ELEMENTS:
        raise NotApplicableError(
            f"a core of side {view.block} takes too long here: {MOST_ELEMENTS // 2} is the limit"
        )


def _places(view: OutsiderView) -> slice:
    """The blocks that are compared: all, or as many in the middle of a sample as time allows."""
    count = min(view.kappa, MOST_PLACES, MOST_ELEMENTS // view.block)
    start = (view.kappa - count) // 2
    return slice(start, start + count)


def _best(search: RotationSearch, rng: np.random.Generator) -> tuple[Array, float, int]:
    """The rotation that agrees best, from several starts where time allows."""
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
    attacker=OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: the published bound for kappa > 1 counts guesses of the core only",
    advice="Use kappa = 1. A larger kappa repeats the core, and repeating it shows it, whitened or not.",
)
