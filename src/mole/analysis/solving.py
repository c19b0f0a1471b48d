"""Solving for the secret: from the augmented layer alone (equations 11 to 14), and from known pairs (15).

To take the augmented layer apart into its factors (the Aug-Conv reversing attack), the paper counts unknown
*vectors* (the rows or columns of M^-1) against *scalar* equations, one for each output position of one
channel. The functions called `published_` do the same; those called `counted_` count scalars on both sides,
over all channels. Neither count proves anything about the attack: the channels of an augmented layer can be
told apart without solving for M at all.
"""

from mole.analysis.guessing import log2_near_guess_bound
from mole.analysis.sizes import check_positive, check_sigma, core_side


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
