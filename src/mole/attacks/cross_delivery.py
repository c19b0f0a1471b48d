"""Two deliveries under one key, or a delivery and requests: which rows are the same image?

Morphing adds no randomness, so one image under one key is one row, whatever its id and whatever the core.
Whoever has both learns who was in the first study and is now in the second, and how labels changed.
"""

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import Attack, Attacker, Finding
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.scheme.shapes import Array, unroll

Pairs = npt.NDArray[np.intp]
SAME = 0.03  # of a row's length: what 8 bits round away
AT_ONCE = 512


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Link every row with the one in the other delivery that is the same."""
    if view.elsewhere is None:
        raise NotApplicableError("no second delivery under the same key was given")
    rows, others = (unroll(some).astype(np.float32) for some in (view.morphed, view.elsewhere))
    pairs = linked_rows(rows, others)
    return Finding(
        words=(
            f"{len(pairs):,} of the {len(rows):,} rows stand in the other delivery as well, among its "
            f"{len(others):,}: one image under one key is one row, whatever its id."
        ),
        links=pairs,
        links_to="elsewhere",
        facts={"rows": len(rows), "rows of the other": len(others), "linked": len(pairs)},
    )


def linked_rows(rows: Array, others: Array) -> Pairs:
    """Each row that has its like among others, and which: (how many, 2).

    >>> linked_rows(np.eye(3), np.eye(3)[[2, 0]] + 0.001).tolist()
    [[0, 1], [2, 0]]
    """
    found = []
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        nearest, apart = _nearest(part, others)
        close = np.flatnonzero(apart <= SAME * np.maximum(np.linalg.norm(part, axis=1), 1e-12))
        found.append(np.stack([start + close, nearest[close]], axis=1))
    return np.concatenate(found).astype(np.intp)


def _nearest(rows: Array, others: Array) -> tuple[Pairs, Array]:
    """The nearest other of each row, and how far it is."""
    squares = np.square(others).sum(axis=1)
    nearest = (squares - 2 * rows @ others.T).argmin(axis=1)
    apart: Array = np.linalg.norm(rows - others[nearest], axis=1)
    return nearest, apart


ATTACK = Attack(
    name="cross-delivery",
    title="Linking rows of two deliveries",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: morphing is deterministic",
    advice="Use a new key for every delivery whose rows must not be linked with those of another.",
)
