"""Blank images and black borders: plain images that everybody knows.

A data set with blank images in it, all black say, shows them: equal images are equal rows, and the largest
group of equal rows is likely to be blank. That is one known pair, and one known pair gives one number of
every other row: how far it goes along the blank image. For an orthogonal core that is its brightness,
exactly; for a whitened one a weighted sum of its pixels, whose weights follow from public images.

Pixels that are the same in all images, a black border say, make the morphed data vary in fewer directions
than it has numbers: how many are missing is how many such pixels there are, and the core to be found is so
much smaller.
"""

import numpy as np

from mole.attacks.linkage import same_rows
from mole.attacks.tools.attack import Attack, Attacker, Finding
from mole.attacks.tools.blocks import FLOOR
from mole.attacks.tools.views import NotApplicableError, OutsiderView
from mole.scheme.shapes import Array, element_count, unroll

FEWEST_BLANK = 3  # two equal rows are a duplicate
MOST_ROWS = 10_000
MOST_ELEMENTS = 3072


def run(view: OutsiderView, rng: np.random.Generator) -> Finding:
    """Take the largest group of equal rows for blank images, and read one number of every row off them."""
    rows = unroll(view.morphed[:MOST_ROWS]).astype(np.float32)
    if rows.shape[1] > MOST_ELEMENTS:
        raise NotApplicableError(f"rows of {rows.shape[1]} numbers take too long here")
    still = rows.shape[1] - _directions(rows)
    facts = {"rows": len(rows), "numbers of a row": rows.shape[1], "directions without variation": still}
    groups = sorted(same_rows(rows, rng), key=len) if len(rows) >= FEWEST_BLANK else []
    borders = f" It varies in {rows.shape[1] - still:,} of {rows.shape[1]:,} directions." if still else ""
    if not groups or len(groups[-1]) < FEWEST_BLANK:
        return Finding(
            words=f"No row occurs {FEWEST_BLANK} times, as blank ones would.{borders}", facts=facts
        )
    blank = rows[list(groups[-1])].mean(axis=0)
    direction = _weights(view)
    along = rows @ blank
    return Finding(
        words=(
            f"{len(groups[-1]):,} rows are equal, and were taken for blank images. How far every other row "
            f"goes along them is one weighted sum of its pixels.{borders}"
        ),
        directions=direction[np.newaxis].astype(np.float32),
        coefficients=along[:, np.newaxis],
        facts=facts | {"rows taken for blank": len(groups[-1])},
    )


def _directions(rows: Array) -> int:
    """In how many directions rows vary, rounding aside."""
    centred = rows - rows.mean(axis=0)
    variances = np.linalg.eigvalsh((centred.T @ centred).astype(np.float64))
    return int(np.count_nonzero(variances > FLOOR * variances[-1]))


def _weights(view: OutsiderView) -> Array:
    """The pixels' weights in the number that is read off, as a unit vector.

    The inner product of two morphed rows is x M M^T b: the pixels' sum where the core is orthogonal, and
    the sum after whitening, x S^-1 b, where it whitens.
    """
    if view.public is None:
        constant: Array = np.ones(element_count(view.input_shape))
        return constant / np.linalg.norm(constant)
    public = unroll(view.public).astype(np.float64)
    axes = (0, *range(2, view.public.ndim))
    black = np.broadcast_to(view.public.min(axis=axes, keepdims=True), view.public[:1].shape)
    weights = black.reshape(-1).astype(np.float64)
    if not view.keeps_lengths(at=(0.5,)):  # the blank ones pull at the other quartiles
        spread = np.cov(public.T)
        ridge = FLOOR * np.trace(spread) / len(spread)
        weights = np.linalg.solve(spread + ridge * np.eye(len(spread)), weights)
    unit: Array = weights / max(float(np.linalg.norm(weights)), 1e-12)
    return unit


ATTACK = Attack(
    name="blank-images",
    title="Blank images and black borders",
    attacker=Attacker.OUTSIDER,
    view=OutsiderView,
    run=run,
    source="this project: a blank image is a known one",
    advice="Leave out blank images, and crop borders that are the same in all images, before delivering.",
)
