"""Was this image delivered? Likelihood ratios: a row of its own against rows of anything else.

Two questions. *Position known*: two images and two rows belong together; which image is behind which row?
That is the game that differential privacy bounds. *Position unknown*: is there a row of this image among
all rows? The ratio of likelihoods, that a row is the image's own against that it is any, is averaged over
all rows; what rows are like in general is what a normal distribution fits to them.
"""

import numpy as np

from mole.attacks.tools.attack import Attack, Finding, Reader
from mole.attacks.tools.protected_view import Channel, ProtectedView
from mole.attacks.tools.views import MissingInputError
from mole.scheme.shapes import Array

AT_ONCE = 128  # images compared with all rows at a time
WIDEST = 2048  # numbers in a row of which all directions are looked at


def run(view: ProtectedView, _: np.random.Generator) -> Finding:
    """Give every image that is asked for a figure: the larger, the more likely it was delivered."""
    if view.pairs is None or view.pair_features is None:
        raise MissingInputError("there are no images of which to ask whether they were delivered")
    which = np.stack(
        [which_of_two(view.rows[view.pairs[:, side]], view.pair_features, view.channel) for side in (0, 1)],
        axis=1,
    )
    asked = None if view.asked_rows is None else view.asked
    unknown = "" if asked is None or view.asked_rows is None else (
        f" Then {len(asked):,} images were compared with {len(view.asked_rows):,} rows, without knowing "
        "where to look; the rows of half of these images had been taken away."
    )  # fmt: skip
    return Finding(
        words=(
            f"For {len(which):,} pairs of images and the two rows that belong to them it was told which "
            f"image is behind which row.{unknown}"
        ),
        which=which,
        membership=None
        if asked is None or view.asked_rows is None
        else among_all(view.asked_rows, asked, view.channel),
        facts={"pairs": len(which), "asked": 0 if asked is None else len(asked)},
    )


def which_of_two(rows: Array, features: Array, channel: Channel) -> Array:
    """Log of how much likelier the first of two images is behind a row than the second: (n,).

    Args:
        rows: noisy features, (n, d).
        features: of the two images of each, (n, 2, d).
        channel: what became of features before they left.
    """
    told = channel.told(channel.own_information(rows[:, np.newaxis], features), features)
    found: Array = told[:, 0] - told[:, 1]
    return found


def among_all(rows: Array, features: Array, channel: Channel) -> Array:
    """Log of how much likelier one of the rows is an image's own than that none is: (m,).

    Args:
        rows: noisy features, (n, d).
        features: of images, without noise, (m, d).
        channel: what became of features before they left.
    """
    sigma = channel.sigma
    general = (
        _in_general(rows, sigma) + rows.shape[1] * np.log(sigma) + np.square(rows / sigma).sum(axis=1) / 2
    )
    found = []
    for start in range(0, len(features), AT_ONCE):
        some = features[start : start + AT_ONCE]
        ratios = channel.told(channel.information(rows, some), some) - general[:, np.newaxis]
        top = ratios.max(axis=0)
        found.append(top + np.log(np.exp(ratios - top).mean(axis=0)))
    return np.concatenate(found)


def _in_general(rows: Array, sigma: float) -> Array:
    """Log of the density of each row, but for a constant, as of any row: a normal distribution fits them.

    No direction spreads less than the noise does.
    """
    middle = rows.mean(axis=0)
    centred = rows - middle
    if rows.shape[1] > WIDEST:
        variance = max(float(np.square(centred).mean()), sigma**2)
        return np.asarray(
            -np.square(centred).sum(axis=1) / variance / 2 - rows.shape[1] * np.log(variance) / 2
        )
    variances, directions = np.linalg.eigh(centred.T @ centred / len(rows))
    variances = np.maximum(variances, sigma**2)
    along = np.square(centred @ directions) / variances
    return np.asarray(-(along.sum(axis=1) + np.log(variances).sum()) / 2)


ATTACK = Attack(
    name="delivered-or-not",
    title="Was this image delivered?",
    attacker=Reader.ASKER,
    view=ProtectedView,
    run=run,
    source="this project: likelihood ratios, by Neyman and Pearson the best test of one row",
    advice="Deliver with fewer bits if that is too much.",
)
