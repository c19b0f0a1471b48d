"""Brute force on the order of channels (paper, before equation 11): try orders until one fits.

An order fits if the first layer, its channels in that order, spans the row space of the augmented layer.
With few channels all orders are tried; with more, as many as there is time for.
"""

import math
from collections.abc import Iterable
from itertools import count, islice, permutations

import numpy as np
import numpy.typing as npt

from mole.analysis.security import log10_channel_order_guess
from mole.attacks.tools.attack import AGAINST_THE_DEVELOPER, Attack, Attacker, Finding, Measure
from mole.attacks.tools.channel_order import Spaces, find_spaces, projector_blocks
from mole.attacks.tools.deconvolution import Deconvolution
from mole.attacks.tools.views import DeveloperView, NotApplicableError
from mole.scheme.shapes import Array

AT_MOST = 64
ALL_ORDERS_UP_TO = 6  # channels: 720 orders
GUESSES = 20_000
MOST_CHANNELS = 64  # the table of agreements has the fourth power of them: 134 MB
FITS = 1e-4  # share of the row space that an order may miss and still fit


def run(view: DeveloperView, rng: np.random.Generator) -> Finding:
    """Try orders, keep the one that fits best, and undo the layer with it."""
    channels = view.layer.channels
    if channels > MOST_CHANNELS:
        raise NotApplicableError(
            f"testing orders of {channels} channels takes too much memory here; there are "
            f"10^{-log10_channel_order_guess(channels=channels):.0f} of them"
        )
    spaces = find_spaces(view, rng)
    if spaces is None:
        raise NotApplicableError(
            "the layer has no more channels than the pixels they see, so every order of its channels fits"
        )
    exhaustive = channels <= ALL_ORDERS_UP_TO
    tried = list(permutations(range(channels)) if exhaustive else _guesses(channels, rng))
    misses = misfits(spaces, tried)
    fitting = int((misses <= FITS).sum())
    best = np.array(tried[int(np.argmin(misses))], dtype=np.intp)
    return Finding(
        words=_words(len(tried), channels, fitting),
        images=_images(view, best) if fitting else None,
        channel_order=best,
        facts={
            "orders tried": len(tried),
            "orders in all": _in_all(channels),
            "orders that fit": fitting,
            "found": fitting > 0,
        },
    )


def _images(view: DeveloperView, order: npt.NDArray[np.intp]) -> Array:
    return Deconvolution.of(view.layer)(view.features_in_order(order, AT_MOST))


def misfits(spaces: Spaces, orders: Iterable[tuple[int, ...]]) -> Array:
    """For each order, the share of the delivered row space outside the layer's own, in that order."""
    table = _agreements(spaces)
    chosen = np.array(list(orders), dtype=np.intp)
    channels = np.arange(chosen.shape[1])
    inside = np.zeros(len(chosen))
    for channel in channels:  # a channel at a time keeps the intermediate small
        inside += table[channel, channels, chosen[:, [channel]], chosen].sum(axis=1)
    return np.asarray(np.maximum(1 - inside / len(spaces.delivered), 0))


def _agreements(spaces: Spaces) -> Array:
    """Common part of block (c, d) of one projector and block (i, j) of the other: (c, d, i, j)."""
    channels = spaces.own.shape[1]
    own, delivered = (projector_blocks(basis).reshape(channels**2, -1) for basis in spaces)
    return np.asarray(delivered @ own.T).reshape((channels,) * 4)


def _guesses(channels: int, rng: np.random.Generator) -> Iterable[tuple[int, ...]]:
    return islice((tuple(rng.permutation(channels).tolist()) for _ in count()), GUESSES)


def _in_all(channels: int) -> int | str:
    log10 = -log10_channel_order_guess(channels=channels)
    return math.factorial(channels) if channels <= 18 else f"10^{log10:.1f}"


def _words(tried: int, channels: int, fitting: int) -> str:
    if channels <= ALL_ORDERS_UP_TO:
        found = "none fits" if not fitting else "one fits" if fitting == 1 else f"{fitting} fit"
        return f"All {tried:,} orders of {channels} channels were tried: {found}."
    in_all = f"{number:,}" if isinstance(number := _in_all(channels), int) else number
    chance = math.log10(tried) + log10_channel_order_guess(channels=channels)
    return (
        f"{tried:,} orders out of {in_all} were guessed, a chance of 10^{chance:.0f}: "
        f"{'one fits' if fitting else 'none fits'}. The order need not be guessed, as another attack shows."
    )


ATTACK = Attack(
    name="channel-search",
    title="Guessing the order of channels",
    attacker=Attacker.DEVELOPER,
    view=DeveloperView,
    run=run,
    source="the paper's brute force on the channel order: a chance of 1 / beta! per guess",
    advice="Nothing is won by making the order harder to guess: it can be read off the augmented layer.",
    helps=AGAINST_THE_DEVELOPER
    | {
        Measure.MANY_CHANNELS: "Still, agree on a first layer of at least 16 channels: with fewer, "
        "guessing alone is enough."
    },
)
