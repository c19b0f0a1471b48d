"""Is this image among them? Somebody who has an image asks whether it was delivered.

An orthogonal core keeps lengths, and few images share one: an image whose blocks have the lengths of a row
is there. Under any other core the rotation that higher moments give (`moment_matching`) carries an image
over to morphed data, roughly; its own row then lies nearer to it than rows of other images do.
"""

import numpy as np
from scipy.spatial import cKDTree

from mole.attacks.moment_matching import match_moments
from mole.attacks.tools.attack import Attack, Attacker, Finding, Measure
from mole.attacks.tools.views import MissingInputError, OutsiderView
from mole.scheme.shapes import Array

AT_ONCE = 512


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Give every candidate a figure: the larger, the more likely it was delivered."""
    if view.candidates is None:
        raise MissingInputError(
            "there are no images of which to ask whether they are among the morphed ones"
        )
    kept = view.keeps_lengths()
    likely = by_length(view, view.candidates) if kept else by_rotation(view, view.candidates, rng)
    how = "their lengths, which the core keeps" if kept else "the rotation that higher moments gave"
    return Finding(
        words=(
            f"{len(view.candidates):,} images were compared with {len(view.morphed):,} morphed rows by "
            f"{how}: each got a figure for how likely it is among them."
        ),
        membership=likely,
        facts={"candidates": len(view.candidates), "rows": len(view.morphed), "by lengths": kept},
    )


def by_length(view: OutsiderView, candidates: Array) -> Array:
    """How near the nearest row of like lengths is, the nearest largest."""
    ours, theirs = (
        np.linalg.norm(view.to_blocks(some), axis=2).astype(np.float64)
        for some in (candidates, view.morphed)
    )
    apart: Array = -np.asarray(cKDTree(theirs).query(ours)[0])
    return apart


def by_rotation(view: OutsiderView, candidates: Array, rng: np.random.Generator) -> Array:
    """How much more a candidate is like its nearest row, as rebuilt, than like the next."""
    found = match_moments(view, rng)
    wanted, likeness = _standardised(view.to_blocks(candidates)), []
    for start in range(0, len(view.morphed), AT_ONCE):
        rebuilt = found.undo(view.to_blocks(view.morphed[start : start + AT_ONCE]))
        likeness.append(wanted @ _standardised(rebuilt).T)
    best: Array = np.concatenate(likeness, axis=1).max(axis=1)
    return best


def _standardised(blocks: Array) -> Array:
    rows = blocks.reshape(len(blocks), -1)
    rows = rows - rows.mean(axis=1, keepdims=True)
    scaled: Array = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled.astype(np.float32)


ATTACK = Attack(
    name="membership",
    title="Is this image among them?",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: not considered in the paper",
    advice="",
    helps={
        Measure.SEALED: "Seal the delivery for its developer where it matters who is in it.",
        Measure.WHITENED: "Use a whitened core with kappa = 1: it takes the lengths away.",
    },
)
