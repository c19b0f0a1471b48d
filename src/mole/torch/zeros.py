"""Zeros around a model's input, (before, after) for each of the last axes; () for none.

They count from the last axis, and first axes without any are left out. So an axis of channels that a model
puts in front of its samples changes nothing.
"""

from typing import Any

from mole.scheme.first_layer import Padding


def zeros_added(args: tuple[Any, ...]) -> Padding | None:
    """What PyTorch's constant padding adds, from its arguments; None for numbers other than zero."""
    tensor, sides, *value = args
    pairs: Padding = tuple(zip(sides[::2], sides[1::2], strict=True))[::-1]
    if len(pairs) >= tensor.ndim or min(sides, default=0) < 0 or any(value):
        return None
    return total(pairs, ())


def total(one: Padding, other: Padding) -> Padding:
    """Zeros around zeros.

    >>> total(((1, 0),), ((2, 2), (0, 1)))
    ((2, 2), (1, 1))
    >>> total(((0, 0), (1, 1)), ())
    ((1, 1),)
    """
    axes = max(len(one), len(other))
    pairs = zip(on_axes(one, axes), on_axes(other, axes), strict=True)
    both = [(a + c, b + d) for (a, b), (c, d) in pairs]
    while both and both[0] == (0, 0):
        del both[0]
    return tuple(both)


def added_since(before: Padding, now: Padding, *, axes: int) -> Padding | None:
    """What was added in between, for each of the last axes; None if other axes have zeros too.

    >>> added_since(((1, 1),), ((2, 2), (1, 2)), axes=2)
    ((2, 2), (0, 1))
    """
    if max(len(now), len(before)) > axes:
        return None
    pairs = zip(on_axes(now, axes), on_axes(before, axes), strict=True)
    return tuple((a - c, b - d) for (a, b), (c, d) in pairs)


def on_axes(padding: Padding, axes: int) -> Padding:
    """The same zeros, written out for that many axes.

    >>> on_axes(((1, 1),), 2)
    ((0, 0), (1, 1))
    """
    return ((0, 0),) * (axes - len(padding)) + padding
