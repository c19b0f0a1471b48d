"""Some of the delivered images are public: their lengths find them, and they give the core.

An orthogonal core keeps the length of every block and all angles. So an image that the attacker owns and a
morphed row of the same length are perhaps one image; pairs that also have the same angles among each other
are, and least squares gives the core from them. It takes q / kappa of them to read every other row; fewer
show as much of it as they span. Neither a whitened nor a Gaussian core keeps lengths.

With many blocks an image is surer: the angles among its own blocks are kept as well, and one image is
enough.
"""

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.pair_solution import PairSolution
from mole.attacks.tools.views import MissingInputError, OutsiderView
from mole.scheme.shapes import Array, unroll

Pairs = npt.NDArray[np.intp]
SAME_LENGTH, SAME_ANGLE = 2e-3, 1e-3  # over the lengths: 8-bit data is rounded that much
SAME_INSIDE = 3e-3  # the same for all angles of one image together
NEIGHBOURS = 4  # rows of like length that are tried for each public image
MOST_LENGTHS = 16  # blocks whose lengths are compared
MOST_PAIRS = 4096  # the table of angles is as wide and high
FEWEST_PAIRS = 8  # fewer may agree by chance ...
FEWEST_BLOCKS = 8  # ... unless an image has so many blocks that its own angles tell
AT_MOST_IMAGES, AT_ONCE = 256, 64


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Find public images among the rows, and read the others with their help."""
    if view.public is None:
        raise MissingInputError("there are no public images that could be among the morphed ones")
    pairs = find_pairs(view, view.public)
    needed = view.images_for_core
    facts = {"public images": len(view.public), "found": len(pairs), "needed for the core": needed}
    if not len(pairs):
        return Finding(
            words=(
                f"None of the {len(view.public):,} public images has the length and the angles of a "
                "morphed row: none of them was delivered, or the core does not keep lengths."
            ),
            links=pairs,
            facts=facts,
        )
    rows, images = pairs[:MOST_PAIRS].T
    known = [
        view.to_blocks(some).astype(np.float64).reshape(-1, view.block)
        for some in (view.public[images], view.morphed[rows])
    ]
    blocks = view.to_blocks(view.morphed[:AT_MOST_IMAGES]).astype(np.float64)
    solution = PairSolution(*known)
    rebuilt = solution(blocks.reshape(-1, view.block)).reshape(blocks.shape)
    were, determine = "was" if len(pairs) == 1 else "were", "determines" if needed == 1 else "determine"
    return Finding(
        words=(
            f"{len(pairs):,} of {len(view.public):,} public images {were} found among the morphed rows by "
            f"their lengths and angles. {needed:,} {determine} the core; fewer show as much of the other "
            "images as they span."
        ),
        images=view.to_samples(rebuilt).astype(np.float32),
        unmorph=lambda blocks: solution(blocks.astype(np.float64)).astype(np.float32),
        links=pairs,
        facts=facts,
    )


def find_pairs(view: OutsiderView, public: Array) -> Pairs:
    """Rows of morphed and of public images that are the same image: (how many, 2)."""
    guesses, fewest = _of_one_length(view, public), FEWEST_PAIRS
    if view.kappa >= FEWEST_BLOCKS:
        guesses, fewest = guesses[_same_inside(view, public, guesses)], 1
    if len(guesses) < fewest:
        return guesses[:0]
    plain, morphed = (unroll(some).astype(np.float32) for some in (public, view.morphed))
    ours, theirs = plain[guesses[:, 1]], morphed[guesses[:, 0]]
    size = np.linalg.norm(ours, axis=1)
    agree = np.abs(ours @ ours.T - theirs @ theirs.T) <= SAME_ANGLE * np.multiply.outer(size, size)
    # Those that agree with the pair that agrees with most, and with each other.
    chosen = np.flatnonzero(agree[agree.sum(axis=1).argmax()])
    chosen = chosen[agree[np.ix_(chosen, chosen)].mean(axis=1) > 0.5]
    found: Pairs = guesses[chosen]
    found = found[np.unique(found[:, 0], return_index=True)[1]]
    return found if len(found) >= max(fewest, 0.01 * len(guesses)) else found[:0]


def _of_one_length(view: OutsiderView, public: Array) -> Pairs:
    """Pairs whose blocks are of the same length, the closest first."""
    ours, theirs = (
        np.linalg.norm(view.to_blocks(some), axis=2).astype(np.float64) for some in (public, view.morphed)
    )
    telling = np.argsort(ours.std(axis=0))[-MOST_LENGTHS:]  # where images differ: not at a black border
    ours, theirs = ours[:, telling], theirs[:, telling]
    reach = SAME_LENGTH * float(np.median(np.linalg.norm(ours, axis=1)))
    count = min(NEIGHBOURS, len(theirs))
    found = cKDTree(theirs).query(ours, k=np.arange(1, count + 1), distance_upper_bound=reach)
    apart, rows = (np.asarray(some) for some in found)
    order = np.argsort(apart, axis=None)[: np.isfinite(apart).sum()][:MOST_PAIRS]
    images, place = np.unravel_index(order, apart.shape)
    return np.stack([rows[images, place], images], axis=1).astype(np.intp)


def _same_inside(view: OutsiderView, public: Array, guesses: Pairs) -> npt.NDArray[np.bool_]:
    """Which pairs have the same angles among the blocks of the image itself."""
    same: npt.NDArray[np.bool_] = np.zeros(len(guesses), bool)
    for start in range(0, len(guesses), AT_ONCE):
        rows, images = guesses[start : start + AT_ONCE].T
        ours, theirs = view.to_blocks(public[images]), view.to_blocks(view.morphed[rows])
        angles = ours @ ours.transpose(0, 2, 1)
        apart = np.linalg.norm(angles - theirs @ theirs.transpose(0, 2, 1), axis=(1, 2))
        same[start : start + AT_ONCE] = apart <= SAME_INSIDE * np.linalg.norm(angles, axis=(1, 2))
    return same


ATTACK = Attack(
    name="overlap",
    title="Public images among the delivered ones",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project; known for distance-preserving maps (Liu et al., PKDD 2006)",
    advice="Leave out images that anybody else may have.",
    helps={Measure.WHITENED: "Use a whitened core with kappa = 1: then lengths say little."},
)
