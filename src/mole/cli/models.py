"""The shape of a sample on the command line."""

from mole.cli.terminal import CallError
from mole.errors import MoleError
from mole.scheme.shapes import Shape, check_shape

MAX_CLASSES = 100_000


def parse_shape(text: str) -> Shape:
    """A shape from text.

    >>> parse_shape("3x32x32")
    (3, 32, 32)
    """
    try:
        return check_shape(tuple(int(side) for side in text.split("x")))
    except (ValueError, MoleError):
        raise CallError(f"'{text}' is no shape: write it as 3x32x32") from None
