"""How sure a measured figure is: intervals that hold the true one in 999 of 1,000 audits.

Few figures stand on one page, and one that exceeds its bound says that the software is broken: that must
not come of chance.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from mole.scheme.shapes import Array

CONFIDENCE = 0.999
FALSE_ALARMS = 0.01


class Measurement(NamedTuple):
    """A measured figure, and between what the true one lies."""

    value: float
    low: float
    high: float


def share_of(hits: float, count: float, confidence: float = CONFIDENCE) -> Measurement:
    """A share, by Clopper and Pearson.

    >>> [round(part, 4) for part in share_of(0, 100)]
    [0.0, 0.0, 0.0732]
    """
    tail = (1 - confidence) / 2
    low = 0.0 if hits <= 0 else float(beta.ppf(tail, hits, count - hits + 1))
    high = 1.0 if hits >= count else float(beta.ppf(1 - tail, hits + 1, count - hits))
    return Measurement(hits / count, low, high)


def area_between(positives: Array, negatives: Array) -> Measurement:
    """How often a positive ranks before a negative: the area under the curve, by DeLong and others.

    Its variance says how many pairs that did not share a row would be as sure, and the interval is theirs.

    >>> area_between(np.array([2.0, 3.0]), np.array([0.0, 1.0])).value
    1.0
    """
    before = np.searchsorted(np.sort(negatives), positives, side="left")
    until = np.searchsorted(np.sort(negatives), positives, side="right")
    wins = (before + until) / (2 * len(negatives))
    above = len(positives) - np.searchsorted(np.sort(positives), negatives, side="right")
    tied = above + (np.searchsorted(np.sort(positives), negatives, side="right")
                    - np.searchsorted(np.sort(positives), negatives, side="left")) / 2  # fmt: skip
    losses = tied / len(positives)
    value = float(wins.mean())
    variance = float(wins.var() / len(positives) + losses.var() / len(negatives))
    pairs = value * (1 - value) / variance if variance > 0 else min(len(positives), len(negatives))
    _, low, high = share_of(value * pairs, pairs)
    return Measurement(value, low, high)


def detected(positives: Array, negatives: Array, false_alarms: float = FALSE_ALARMS) -> Measurement:
    """Which share of positives lies above all but so large a share of negatives.

    Where exactly that is depends on the few highest negatives. The low end takes a limit above which
    surely no more of them lie, the high end one above which surely as many do; without enough negatives to
    be sure, nothing is known.

    >>> detected(np.arange(200.0), np.arange(100.0)).value
    0.505
    """
    ranked = np.sort(negatives)[::-1]
    confidence = 1 - (1 - CONFIDENCE) / 2  # half of the doubt is for the limit
    counts, tail = np.arange(len(ranked)), (1 - confidence) / 2
    strict = counts[beta.ppf(1 - tail, counts + 1, len(ranked) - counts) <= false_alarms]
    loose = 1 + counts[:-1][beta.ppf(tail, counts[1:], len(ranked) - counts[1:] + 1) >= false_alarms]
    value = float((positives > ranked[int(false_alarms * len(ranked))]).mean())

    def share_above(count: int) -> Measurement:
        return share_of(int((positives > ranked[count]).sum()), len(positives), confidence)

    low = share_above(int(strict[-1])).low if len(strict) else 0.0
    return Measurement(value, low, share_above(int(loose[0])).high if len(loose) else 1.0)


def share(value: float) -> str:
    r"""A share in per cent, never rounded up to all or down to nothing; it stays on one line.

    >>> [share(value).replace("\xa0", " ") for value in (1, 0.99999, 0.5, 0.015625, 0.00001, 0)]
    ['100 %', '99.99 %', '50 %', '1.56 %', '0.01 %', '0 %']
    """
    percent = 100 * value
    if 99 < percent < 100:
        return f"{min(percent, 99.99):.2f}\u00a0%"
    return f"{max(percent, 0.01) if percent > 0 else percent:.3g}\u00a0%"
