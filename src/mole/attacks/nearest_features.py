"""Which image is behind a row? The likeliest candidate: among features of one length, the nearest.

If candidates are equally likely beforehand, no rule picks the right one more often. So what is measured
here is as good as the best attacker gets on these images, and the certificate says how often that can be at
most.
"""

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import Attack, Finding, Reader
from mole.attacks.tools.protected_view import Channel, ProtectedView
from mole.attacks.tools.views import MissingInputError
from mole.scheme.shapes import Array

AT_ONCE = 256  # rows compared with all candidates at a time


def run(view: ProtectedView, _: np.random.Generator) -> Finding:
    """Pick a candidate for every row, from each of its lists."""
    if view.candidates is None or not view.lists:
        raise MissingInputError("there are no candidate images to choose from")
    picked = {
        count: likeliest(view.rows[: len(choices)], view.candidates, view.channel, choices)
        for count, choices in view.lists.items()
    }
    most = max(view.lists)
    fits = view.fitting(view.lists[most])
    by_label = None
    if fits is not None:
        choices = view.lists[most]
        some = view.rows[: len(choices)]
        by_label = {most: likeliest(some, view.candidates, view.channel, choices, fits)}
    rows = max(len(choices) for choices in view.lists.values())
    numbers = " or ".join(f"{count:,}" for count in view.lists)
    return Finding(
        words=(
            f"For each of {rows:,} rows, {numbers} candidate images were put through the front, without "
            "noise, and the one that is likeliest to be behind the row was picked; of equally likely ones "
            "the nearest."
            + ("" if fits is None else " Then the same was done among candidates with the row's label.")
        ),
        picked=picked,
        picked_by_label=by_label,
        facts={"rows": rows, "candidates": list(view.lists), "numbers in a row": view.features},
    )


def likeliest(
    rows: Array,
    features: Array,
    channel: Channel,
    choices: npt.NDArray[np.intp] | None = None,
    fits: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.intp]:
    """For each row the place in its list of the features that it is likeliest of.

    Of equally likely ones it is the nearest, and of equally near ones the first.

    Args:
        rows: noisy features, (n, d).
        features: of candidates, (m, d).
        channel: what became of features before they left.
        choices: which candidates each row has, (n, how many); None for all of them.
        fits: which of these can be picked at all, (n, how many); None for all.
    """
    found = []
    for start in range(0, len(rows), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        near = channel.information(rows[some], features)
        told = channel.told(near, features)
        if choices is not None:
            near, told = (np.take_along_axis(part, choices[some], axis=1) for part in (near, told))
        if fits is not None:
            told = np.where(fits[some], told, -np.inf)
        is_best = told == told.max(axis=1, keepdims=True)
        found.append(np.where(is_best, near, -np.inf).argmax(axis=1))
    return np.concatenate(found)


ATTACK = Attack(
    name="nearest-features",
    title="The likeliest of many candidates",
    attacker=Reader.FINDER,
    view=ProtectedView,
    run=run,
    source="this project: the likeliest candidate, which no attacker beats on average",
    advice="Deliver with fewer bits if that is too often.",
)
