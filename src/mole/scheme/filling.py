"""Samples whose sides are no multiples of a tile: zeros fill the last tile of each axis.

They are added to plain data, after normalisation, at the end of each axis of positions. The developer's
layer takes filled samples with as many positions fewer at the end, so that its features stay what they are:
where it saw zeros beyond the edge, it sees those that were added.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import ShapeError
from mole.foreign_text import shown
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import Layout, ShuffledTilesLayout, TilesLayout
from mole.scheme.shapes import Array, Shape, check_shape, shape_text


def filled_shape(shape: Shape, tile: int) -> Shape:
    """A sample's shape with each axis but the first as long as its tiles are.

    >>> filled_shape((3, 225, 225), 8), filled_shape((1, 32, 32), 8)
    ((3, 232, 232), (1, 32, 32))
    """
    return (*shape[:1], *(-(-side // tile) * tile for side in shape[1:]))


def tiles_over(shape: Shape, tile: int) -> TilesLayout:
    """The layout whose tiles of this side cover samples of a shape, with zeros where they reach beyond.

    >>> tiles_over((1, 28, 28), 8).input_shape
    (1, 32, 32)

    Raises:
        ParameterError: if samples have no axes to cut into tiles, or are smaller than one.
    """
    if len(shape) > 1 and isinstance(tile, int | np.integer) and 1 <= tile <= min(shape[1:]):
        shape = check_shape(filled_shape(shape, tile))
    return TilesLayout.of_side(shape, tile)


def can_fill(shape: Shape, layout: Layout) -> bool:
    """Whether samples of a shape can be morphed in a layout: they have its shape, or zeros give it them.

    Shuffled tiles take no zeros: tiles that the network never looks at would come between the others.

    >>> tiles = TilesLayout.of_side((1, 32, 32), 8)
    >>> can_fill((1, 28, 28), tiles), can_fill((1, 24, 28), tiles), can_fill((1, 33, 32), tiles)
    (True, False, False)
    """
    if shape == layout.input_shape:
        return True
    if not isinstance(layout, TilesLayout) or isinstance(layout, ShuffledTilesLayout):
        return False
    return filled_shape(shape, layout.tile) == layout.input_shape


def check_plain_shape(shape: Shape | None, layout: Layout) -> Shape | None:
    """The same shape, or an error where samples of it are not what filled a layout's tiles.

    Raises:
        ShapeError: if they would not fill them, or need no zeros.
    """
    if shape is None:
        return None
    shape = check_shape(shape)
    if shape == layout.input_shape or not can_fill(shape, layout):
        whole = shape_text(layout.input_shape)
        raise ShapeError(f"{shown(shape_text(shape))} samples are not those that zeros make {whole} of")
    return shape


def filled(samples: Array, layout: Layout) -> Array:
    """Samples, (n, *shape), with the zeros that fill their last tiles; others as they are."""
    shape = samples.shape[1:]
    if shape == layout.input_shape or not can_fill(shape, layout):
        return samples
    whole = np.zeros((len(samples), *layout.input_shape), samples.dtype)
    whole[(slice(None), *map(slice, shape))] = samples
    return whole


def without_filling(samples: npt.NDArray[Any], shape: Shape) -> npt.NDArray[Any]:
    """Undo `filled`: the samples without the zeros at the ends, (n, *shape)."""
    return samples[(slice(None), *map(slice, shape))]


def filled_layer(layer: FirstLayer, input_shape: Shape) -> FirstLayer:
    """The same layer on filled samples: its output has the same sides, because it reads less at the end.

    >>> layer = FirstLayer.conv(np.ones((1, 1, 3)), None, input_shape=(1, 5), padding=1)
    >>> on_tiles = filled_layer(layer, (1, 8))
    >>> on_tiles.padding, on_tiles.output_shape == layer.output_shape
    (((1, -2),), True)
    """
    if input_shape == layer.input_shape:
        return layer
    added = (whole - side for whole, side in zip(input_shape[1:], layer.input_shape[1:], strict=True))
    padding = tuple(
        (before, after - more) for (before, after), more in zip(layer.padding, added, strict=True)
    )
    return replace(layer, input_shape=input_shape, padding=padding)
