"""Known pairs of plain and morphed images: the D-T pair attack (equation 15)."""

from mole.analysis.sizes import core_side


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
