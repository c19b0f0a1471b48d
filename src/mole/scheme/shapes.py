"""Shapes, the flattening order, and how a sample splits into blocks.

The flattening order is written here once: a sample of shape (channels, height, width) becomes a row
vector channel by channel, and inside a channel row by row (`"b c h w -> b (c h w)"`, the paper's
section 3.1). That is the C order of NumPy and PyTorch, so `unroll` and `roll` never move an element.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.foreign_text import shown
from mole.limits import MAX_ELEMENTS

MAX_AXES = 8
MOST_COLOURS = 4  # with transparency

Array = npt.NDArray[np.floating[Any]]
FloatType = np.dtype[np.floating[Any]]
Shape = tuple[int, ...]


def element_count(shape: Shape) -> int:
    """Number of elements in a sample of this shape: the paper's alpha m^2.

    >>> element_count((3, 32, 32))
    3072
    """
    return math.prod(shape)


def channels_last_hint(shape: Shape) -> str:
    """What to say of a shape that does not fit and has its channels at the end, as pictures often have.

    >>> channels_last_hint((32, 32, 3)), channels_last_hint((3, 32, 32))
    ('channels come first, so try 3x32x32', '')
    """
    last, others = shape[-1], shape[:-1]
    turned = len(shape) >= 3 and last <= MOST_COLOURS < min(others)
    return f"channels come first, so try {shape_text((last, *others))}" if turned else ""


def shape_text(shape: Shape) -> str:
    """A shape for people.

    >>> shape_text((3, 32, 32))
    '3x32x32'
    """
    return "x".join(map(str, shape))


def check_shape(shape: Shape, most: int = MAX_ELEMENTS) -> Shape:
    """The same shape as a tuple of plain ints, or an error when it cannot be a sample's shape.

    >>> check_shape([1, 28, 28])
    (1, 28, 28)
    """
    try:
        checked = tuple(int(side) for side in shape)
        usable = all(side == given for side, given in zip(checked, shape, strict=True))
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"input shape {shown(repr(shape))} is not a shape: give whole numbers such as (3, 32, 32)"
        ) from None
    if not usable or not 1 <= len(checked) <= MAX_AXES or min(checked) < 1:
        raise ParameterError(
            f"input shape {shown(repr(shape))} cannot be used: "
            "give positive whole numbers such as (3, 32, 32)"
        )
    if element_count(checked) > most:
        raise ParameterError(f"a shape of {shown(shape_text(checked))} has more than {most} elements")
    return checked


def check_floats(batch: Any, what: str = "the batch") -> Array:
    """The same array, or an error if it is not a NumPy array of floats."""
    if not isinstance(batch, np.ndarray):
        raise ShapeError(f"{what} is a {type(batch).__name__}, not a NumPy array: convert it first")
    if not np.issubdtype(batch.dtype, np.floating):
        raise ShapeError(
            f"{what} is {batch.dtype}, not a float type: normalise images first (`Normalisation.apply`)"
        )
    return batch


def check_finite(rows: Array, what: str = "the batch") -> Array:
    """The same rows, or an error that names the first with a NaN or an infinity."""
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))[0])
        raise ShapeError(f"sample {bad} of {what} has a NaN or an infinity: remove it")
    return rows


def unroll(batch: Array) -> Array:
    """Flatten samples to row vectors: (b, *shape) to (b, elements).

    >>> unroll(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[0., 1., 2., 3., 4., 5., 6., 7.]])
    """
    if batch.ndim < 2:
        raise ShapeError(
            f"expected a batch of samples, got an array of shape {batch.shape}: add a batch axis in front"
        )
    return batch.reshape(len(batch), element_count(batch.shape[1:]))


def roll(rows: Array, shape: Shape) -> Array:
    """Undo `unroll`: (b, elements) to (b, *shape).

    >>> roll(np.arange(4.0).reshape(1, 4), (1, 2, 2))
    array([[[[0., 1.],
             [2., 3.]]]])
    """
    if rows.ndim != 2 or rows.shape[1] != element_count(shape):
        raise ShapeError(
            f"rows of shape {rows.shape} cannot become samples of shape {shape}: "
            f"expected (batch, {element_count(shape)})"
        )
    return rows.reshape(len(rows), *shape)


def rows_of(batch: Array, shape: Shape) -> Array:
    """A batch as row vectors, checked: (b, *shape) or already (b, elements), to (b, elements).

    >>> rows_of(np.zeros((5, 3, 32, 32)), (3, 32, 32)).shape
    (5, 3072)
    """
    if batch.shape[1:] not in (shape, (element_count(shape),)):
        raise ShapeError(
            f"a batch of shape {batch.shape} does not fit: expected (batch, {', '.join(map(str, shape))})"
        )
    return unroll(batch)


def valid_kappas(input_shape: Shape) -> tuple[int, ...]:
    """Every morphing scale factor that an input of this shape allows (paper, equation 3).

    >>> valid_kappas((1, 4, 4))
    (1, 2, 4, 8, 16)
    """
    return divisors(element_count(input_shape))


def divisors(number: int) -> tuple[int, ...]:
    """Everything that divides a number, the smallest first; nothing divides zero here.

    >>> divisors(12), divisors(0)
    ((1, 2, 3, 4, 6, 12), ())
    """
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    return tuple(sorted({*small, *(number // divisor for divisor in small)}))


def block_size(input_shape: Shape, kappa: int) -> int:
    """Side q of the core: alpha m^2 / kappa (paper, equation 3).

    >>> block_size((3, 32, 32), kappa=3)
    1024
    >>> block_size((3, 32, 32), kappa=7)
    Traceback (most recent call last):
    mole.errors.ParameterError: kappa = 7 does not divide the 3072 elements of a 3x32x32 input: \
use 2, 3, 4, 6 or 8
    """
    if not isinstance(kappa, int | np.integer):
        raise ParameterError(f"kappa is a whole number, not {kappa!r}")
    elements = element_count(input_shape)
    if kappa >= 1 and elements % kappa == 0:
        return int(elements // kappa)
    near, shape = _nearest(valid_kappas(input_shape), kappa), shape_text(input_shape)
    raise ParameterError(
        f"kappa = {kappa} does not divide the {elements} elements of a {shape} input: use {near}"
    )


def _nearest(values: tuple[int, ...], wanted: int, count: int = 5) -> str:
    """The few values closest to the one asked for, as words: '3, 4 or 6'."""
    chosen = sorted(sorted(values, key=lambda value: abs(value - wanted))[:count])
    *head, last = map(str, chosen)
    return f"{', '.join(head)} or {last}" if head else last
