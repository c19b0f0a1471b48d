"""What finding the secret would take: guessing (equations 7 to 10), solving (11 to 14), known pairs (15).

What is guessed is the morphing matrix, the channel order, or the key's seed. All are chances of somebody
who guesses without looking at anything. They say nothing of somebody who uses the structure of what is
handed over. Chances come as logarithms, because 2^-9437184 is too small for a floating-point number.

Lemma 2 ties the distance of a guess to the error of the images: for morphed data without covariance, a
guess of M^-1 at distance sigma gives images with a *relative* error of sigma. With kappa = 1 that is the
lemma's sigma N^(-1/4), because the paper scales an image to norm 1; with a larger kappa the lemma holds for
the relative error only, not as it is written.

To take the augmented layer apart into its factors (the Aug-Conv reversing attack), the paper counts unknown
*vectors* (the rows or columns of M^-1) against *scalar* equations, one for each output position of one
channel. The functions called `published_` do the same; those called `counted_` count scalars on both sides,
over all channels. Neither count proves anything about the attack: the channels of an augmented layer can be
told apart without solving for M at all.
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


def published_unknowns(*, input_elements: int, kernel_elements: int, kappa: int) -> int:
    """Unknowns of one channel as the paper counts them: alpha m^2 / kappa + alpha p^2 (equation 12).

    >>> published_unknowns(input_elements=3072, kernel_elements=27, kappa=1)
    3099
    """
    check_positive(kernel_elements=kernel_elements)
    return core_side(input_elements=input_elements, kappa=kappa) + kernel_elements


def published_equations(*, output_positions: int) -> int:
    """Equations of one channel as the paper counts them: n^2 (before equation 13).

    >>> published_equations(output_positions=32**2)
    1024
    """
    check_positive(output_positions=output_positions)
    return output_positions


def counted_unknowns(*, input_elements: int, output_channels: int, kernel_elements: int, kappa: int) -> int:
    """Unknown numbers: the q^2 of the inverse core and the alpha beta p^2 of shuffled kernels.

    >>> counted_unknowns(input_elements=3072, output_channels=64, kernel_elements=27, kappa=1)
    9438912
    """
    check_positive(output_channels=output_channels, kernel_elements=kernel_elements)
    side = core_side(input_elements=input_elements, kappa=kappa)
    return side**2 + output_channels * kernel_elements


def counted_equations(*, input_elements: int, output_elements: int) -> int:
    """Equations: every element of C^ac = M^-1 C P is one. At CIFAR size 21 for each unknown.

    >>> counted_equations(input_elements=3072, output_elements=65536)
    201326592
    """
    check_positive(input_elements=input_elements, output_elements=output_elements)
    return input_elements * output_elements


def published_kappa_limit(*, input_elements: int, output_positions: int) -> int:
    """Largest kappa that the paper allows: alpha m^2 / n^2 (equation 13); 0 if it allows none.

    >>> published_kappa_limit(input_elements=3072, output_positions=32**2)
    3
    >>> published_kappa_limit(input_elements=3 * 224**2, output_positions=112**2)
    12
    """
    check_positive(input_elements=input_elements, output_positions=output_positions)
    return input_elements // output_positions


def log2_reversing_bound(
    *, input_elements: int, output_positions: int, kernel_elements: int, kappa: int, sigma: float
) -> float:
    """The paper's bound on guessing what its equations leave open (P_M,ar, equation 14).

    Its figure for CIFAR is 2^-(6 x 10^6):

    >>> log2_reversing_bound(input_elements=3072, output_positions=32**2, kernel_elements=27,
    ...                      kappa=1, sigma=0.5)
    -6291483.0

    For ImageNet it prints 2^-(7.5 x 10^9). Its formula gives, with ResNet-152's first layer:

    >>> log2_reversing_bound(input_elements=3 * 224**2, output_positions=112**2, kernel_elements=147,
    ...                      kappa=1, sigma=0.5)
    -20770455699.0

    Beyond the limit of equation 13 nothing is left open, and the bound is 1:

    >>> log2_reversing_bound(input_elements=3072, output_positions=32**2, kernel_elements=27,
    ...                      kappa=4, sigma=0.5)
    0.0
    """
    check_positive(output_positions=output_positions, kernel_elements=kernel_elements)
    check_sigma(sigma)
    side = core_side(input_elements=input_elements, kappa=kappa)
    if side < output_positions:
        return 0.0
    elements = (side - output_positions) * side + kernel_elements
    return log2_near_guess_bound(distance=sigma, elements=elements)


def published_pairs(*, input_elements: int, kappa: int) -> int:
    """Pairs that the paper asks for: q, one for each row of the core (after equation 15).

    Its figure for CIFAR is 3,072:

    >>> published_pairs(input_elements=3072, kappa=1)
    3072
    """
    return core_side(input_elements=input_elements, kappa=kappa)


def counted_pairs(*, input_elements: int, kappa: int) -> int:
    """Pairs that determine the core: ceil(q / kappa).

    The same core stands kappa times on the diagonal, so one pair gives kappa rows of equations:

    >>> counted_pairs(input_elements=3072, kappa=1), counted_pairs(input_elements=3072, kappa=3)
    (3072, 342)

    That is for an attacker without the augmented layer. With it, one pair is enough.
    """
    return -(-core_side(input_elements=input_elements, kappa=kappa) // kappa)
