"""Guessing the channel order, or the seed that everything secret comes from."""

import math

from mole.analysis.sizes import check_positive

SEED_BITS = 256  # of a MorphKey's seed; a test compares it with the key's


def log10_channel_order_guess(*, channels: int) -> float:
    """Chance of guessing the channel shuffle, 1 / beta! (P_r,bf, between equations 10 and 11).

    The paper's figure for the 64 channels of VGG-16 is 7.9e-90:

    >>> f"{10 ** log10_channel_order_guess(channels=64):.1e}"
    '7.9e-90'
    """
    check_positive(channels=channels)
    return -math.lgamma(channels + 1) / math.log(10)


def log2_seed_guess() -> float:
    """Chance of guessing a key's seed. Not in the paper, whose matrix comes from no seed.

    Two matrices from two seeds have nothing in common, so being near does not count. It is 1e-77, more
    than 7.9e-90: no count of channels or elements makes a key stronger than its seed.

    >>> log2_seed_guess()
    -256.0
    >>> f"{2 ** log2_seed_guess():.1e}"
    '8.6e-78'
    """
    return -float(SEED_BITS)
