"""Guessing blindly: the morphing matrix (equations 7 to 10), the channel order, and the key's seed.

All are chances of somebody who guesses without looking at anything. They say nothing of somebody who uses
the structure of what is handed over. Chances come as logarithms, because 2^-9437184 is too small for a
floating-point number.

Lemma 2 ties the distance of a guess to the error of the images: for morphed data without covariance, a
guess of M^-1 at distance sigma gives images with a *relative* error of sigma. With kappa = 1 that is the
lemma's sigma N^(-1/4), because the paper scales an image to norm 1; with a larger kappa the lemma holds for
the relative error only, not as it is written.
"""

import math

from mole.analysis.sizes import check_positive, check_sigma, core_side
from mole.errors import ParameterError

SEED_BITS = 256  # of a MorphKey's seed; a test compares it with the key's


def log2_near_guess_bound(*, distance: float, elements: int) -> float:
    """Bound on the chance that a random matrix lies near a given one (Lemma 1, equation 8).

    Both have l2-norm 1, and the random one is spread evenly over the sphere: P <= 1/2 d^(N - 1). In three
    dimensions the exact chance is d^2 / 4, half of the bound:

    >>> 2 ** log2_near_guess_bound(distance=0.5, elements=3)
    0.125

    The proof holds: turned over at its rim, the near part of the sphere fits under half a sphere of
    radius d. (The area in equation 20 has a slip, N + 1 for N, that cancels in the ratio.)

    Args:
        distance: d, at most 1.
        elements: N, of either matrix.
    """
    check_positive(elements=elements)
    if not 0 < distance <= 1:
        raise ParameterError(f"a distance of {distance} is outside of what Lemma 1 covers: 0 < d <= 1")
    return (elements - 1) * math.log2(distance) - 1


def log2_core_guess_bound(*, input_elements: int, kappa: int, sigma: float) -> float:
    """Bound on the chance that a blind guess of the core recovers images (Theorem 1, equation 10).

    P <= 1/2 sigma^(N - 1) with N = (alpha m^2 / kappa)^2. The paper's figure is 2^-(9 x 10^6), for CIFAR:

    >>> log2_core_guess_bound(input_elements=3072, kappa=1, sigma=0.5)
    -9437184.0

    Args:
        input_elements: of a sample, alpha m^2.
        kappa: how many times the core stands on the diagonal.
        sigma: the privacy reservation: a relative error up to which images count as recovered.
    """
    check_sigma(sigma)
    side = core_side(input_elements=input_elements, kappa=kappa)
    return log2_near_guess_bound(distance=sigma, elements=side**2)


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
