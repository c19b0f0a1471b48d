"""What morphed rows say about each other: which are the same image, which are alike, which parts stand out.

The same core morphs every row, so the same image becomes the same row, whatever the core. An orthogonal
core keeps all distances: rows that lie near each other are images that lie near each other. It keeps the
length of every block as well, which with kappa > 1 is how much there is to see in that part of the image. A
whitened core keeps neither, but what it makes of them still correlates with the truth a little.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.scheme.shapes import Array, unroll

Indices = npt.NDArray[np.intp]

COMPARED = 512  # rows whose distances are claimed
AT_MOST_MAPS = 256
SAME_IMAGE = "pairs of the same image"  # the fact that counts them
SAME = 1e-4  # a distance below this share of a row's length is rounding
SHADOWS, STEPS = 8, 32  # projections that tell rows apart, and how many sorted neighbours are compared
SAME_SPREAD = 0.1  # quartiles of distances that differ by less are taken for the same


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Compare morphed rows with each other."""
    if len(view.morphed) < 3:
        raise NotApplicableError("there are too few rows to compare with each other: it takes three")
    rows = unroll(view.morphed)
    rows = rows.astype(np.float32) if rows.dtype.itemsize < 4 else rows
    groups = same_rows(rows, rng)
    pairs = sum(len(group) * (len(group) - 1) // 2 for group in groups)
    apart = pdist(rows[:COMPARED].astype(np.float64))
    spread = _quartiles(apart)
    usual = None
    if view.public is not None and len(view.public) >= 3:
        usual = _quartiles(pdist(unroll(view.public[:COMPARED]).astype(np.float64)))
    maps = _block_lengths(view)
    return Finding(
        words=_words(pairs, len(rows), spread, usual, maps is not None),
        maps=maps,
        distances=squareform(apart),
        facts={
            "rows": len(rows),
            SAME_IMAGE: pairs,
            "first groups of the same image": [list(group[:20]) for group in groups[:20]],
            "quartiles of distances, morphed": spread.round(2).tolist(),
            "quartiles of distances, public": None if usual is None else usual.round(2).tolist(),
        },
    )


def same_rows(rows: Array, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Groups of rows that are the same but for rounding, found without comparing each with each.

    >>> rows = np.eye(3)[[0, 1, 0, 2, 0]]
    >>> same_rows(rows, np.random.default_rng(0))
    [(0, 2, 4)]
    """
    near = SAME * max(float(np.median(np.linalg.norm(rows, axis=1))), 1e-12)
    directions = np.linalg.qr(rng.normal(size=(rows.shape[1], min(SHADOWS, rows.shape[1]))))[0]
    shadows = rows @ directions.astype(rows.dtype)  # no two are further apart than their rows
    order = np.argsort(shadows[:, 0])
    links: list[tuple[Indices, Indices]] = []
    for step in range(1, min(STEPS, len(rows) - 1) + 1):
        first, second = order[:-step], order[step:]
        for keep in (shadows, rows):
            close = _near(keep, first, second, near)
            first, second = first[close], second[close]
        links.append((first, second))
    linked = np.hstack([np.stack(pair) for pair in links])
    graph = coo_array((np.ones(linked.shape[1]), (linked[0], linked[1])), shape=(len(rows),) * 2)
    labels = connected_components(graph, directed=False)[1]
    members = np.argsort(labels, kind="stable")
    groups = np.split(members, np.flatnonzero(np.diff(labels[members])) + 1)
    return sorted(tuple(group.tolist()) for group in groups if len(group) > 1)


def _near(rows: Array, first: Indices, second: Indices, distance: float) -> npt.NDArray[np.bool_]:
    """Which pairs of rows lie near each other."""
    parts = [slice(at, at + 1024) for at in range(0, len(first), 1024)]
    apart = [np.linalg.norm(rows[first[part]] - rows[second[part]], axis=1) for part in parts]
    return np.concatenate([np.empty(0), *apart]) <= distance


def _block_lengths(view: OutsiderView) -> Array | None:
    """Each sample's block lengths, painted where the blocks lie; None if that shows nothing."""
    if len(view.input_shape) < 2:
        return None
    try:
        blocks = view.to_blocks(view.morphed[:AT_MOST_MAPS])
    except NotApplicableError:  # nobody knows where the blocks lie; rows can be compared all the same
        return None
    lengths = np.linalg.norm(blocks, axis=2, keepdims=True) / np.sqrt(view.block)
    painted = view.to_samples(np.broadcast_to(lengths, blocks.shape))
    grid = tuple(range(2, painted.ndim))
    return None if np.allclose(painted, painted.mean(axis=grid, keepdims=True)) else painted


def _quartiles(distances: Array) -> Array:
    quartiles: Array = np.quantile(distances, (0.25, 0.5, 0.75))
    return quartiles


def _words(pairs: int, rows: int, spread: Array, usual: Array | None, has_maps: bool) -> str:
    same = f"{pairs:,} pairs of the {rows:,} rows are the same image twice; no core hides that."
    if usual is None:
        told = "An orthogonal core would also keep distances: near rows would be similar images"
    elif np.abs(spread / np.maximum(usual, 1e-12) - 1).max() < SAME_SPREAD:
        told = "Distances are like those of public images, so the core keeps them: near rows are alike"
    else:
        told = "Distances are not like those of public images: the core hides them, or the images differ"
    parts = ", and the length of a block shows how much there is to see in that part of the image."
    return f"{same} {told}{parts if has_maps else '.'}"


ATTACK = Attack(
    name="linkage",
    title="Comparing rows with each other",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: not considered in the paper",
    advice="",
    helps={
        Measure.NO_DUPLICATES: "Remove duplicates before delivering.",
        Measure.WHITENED: "Use a whitened core with kappa = 1: it blurs which images are alike, and has no "
        "blocks whose lengths could be read.",
    },
)
