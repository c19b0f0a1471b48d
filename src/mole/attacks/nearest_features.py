"""Which image is behind a row? The candidate whose features, without noise, lie nearest to it.

For Gaussian noise and candidates that are equally likely beforehand no rule picks the right one more often:
the nearest is the likeliest. So what is measured here is as good as the best attacker gets on these images,
and the certificate says how often that can be at most.
"""

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import Attack, Finding, Reader
from mole.attacks.tools.protected_view import ProtectedView
from mole.attacks.tools.views import MissingInputError
from mole.scheme.shapes import Array

AT_ONCE = 256  # rows compared with all candidates at a time


def run(view: ProtectedView, _: np.random.Generator) -> Finding:
    """Pick a candidate for every row, from each of its lists."""
    if view.candidates is None or not view.lists:
        raise MissingInputError("there are no candidate images to choose from")
    picked = {
        count: nearest(view.rows[: len(choices)], view.candidates, choices)
        for count, choices in view.lists.items()
    }
    rows = max(len(choices) for choices in view.lists.values())
    numbers = " or ".join(f"{count:,}" for count in view.lists)
    return Finding(
        words=(
            f"For each of {rows:,} rows, {numbers} candidate images were put through the front, without "
            "noise, and the one whose features lie nearest to the row was picked: the likeliest one."
        ),
        picked=picked,
        facts={"rows": rows, "candidates": list(view.lists), "numbers in a row": view.features},
    )


def nearest(rows: Array, features: Array, choices: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """For each row the place in its list of the features that lie nearest; of equal ones the first.

    >>> nearest(np.array([[1.0, 0.1]]), np.eye(2), np.array([[1, 0]])).tolist()
    [1]

    Args:
        rows: noisy features, (n, d).
        features: of candidates, (m, d).
        choices: which candidates each row has, (n, how many).
    """
    halves = np.square(features).sum(axis=1) / 2
    found = []
    for start in range(0, len(rows), AT_ONCE):
        likeness = rows[start : start + AT_ONCE] @ features.T - halves
        listed = np.take_along_axis(likeness, choices[start : start + AT_ONCE], axis=1)
        found.append(listed.argmax(axis=1))
    return np.concatenate(found)


ATTACK = Attack(
    name="nearest-features",
    title="The nearest of many candidates",
    attacker=Reader.FINDER,
    view=ProtectedView,
    run=run,
    source="this project: the likeliest candidate under Gaussian noise, which no attacker beats on average",
    advice="Deliver with fewer bits if that is too often.",
)
