"""The row space of the augmented layer: the same as that of the first layer, whatever the key.

C^ac = M^-1 C P, and multiplying by an invertible matrix from the left changes no row space. A few output
pixels are enough to see it: the columns of a small window depend on only a few input elements, so they span
a space far smaller than the window has numbers.

With kappa > 1 there is a second way. The same inverse core stands on the diagonal kappa times, so the kappa
bands of rows, set side by side, are one product: [C^ac_1 ... C^ac_k] = M'^-1 [C_1 P ... C_k P]. That can
show a row space even for a layer with fewer features than pixels, if its bands are not all alike.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mole.attacks.tools.views import LayerGeometry
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_matrix import sparse_layer_matrix
from mole.scheme.layouts import Indices, Layout
from mole.scheme.shapes import Array, Shape, element_count

USUAL_SIDE = 6
ENOUGH, BARELY = 1.5, 1.1  # numbers in a window, for each dimension of the space: shows well, just shows
MOST_NUMBERS = 4096  # in a window: a basis of its space takes seconds
OVERSAMPLING = 2  # rows of the random projection, for each dimension of the space
NOTHING = 1e-9  # of the largest singular value


class Window(NamedTuple):
    """A block of output positions whose receptive field lies inside the image, clear of the padding."""

    start: Shape
    sides: Shape
    dimensions: int  # input elements that it depends on

    def columns(self, output_shape: Shape) -> Indices:
        """Columns of the layer's matrix, channel by channel."""
        index = np.arange(element_count(output_shape)).reshape(output_shape)
        inner = tuple(slice(at, at + side) for at, side in zip(self.start, self.sides, strict=True))
        return index[(slice(None), *inner)].ravel()


def find_window(
    geometry: LayerGeometry, input_shape: Shape, output_shape: Shape, *, margin: int | None = None
) -> Window | None:
    """A window in which the row space is smaller than the window; None if there is none.

    With a margin, the window is at least that much longer along each axis than the kernel reaches.

    >>> vgg = LayerGeometry(kernel=(3, 3), stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1))
    >>> find_window(vgg, (3, 32, 32), (64, 32, 32))
    Window(start=(1, 1), sides=(6, 6), dimensions=192)
    >>> patches = LayerGeometry(kernel=(4, 4), stride=(4, 4), padding=((0, 0), (0, 0)), dilation=(1, 1))
    >>> find_window(patches, (3, 32, 32), (48, 8, 8)) is None
    True
    """
    channels, grid = output_shape[0], output_shape[1:]
    spans = [_inside(geometry, axis, input_shape[1:], grid) for axis in range(len(grid))]
    rooms = [stop - start for start, stop in spans]
    least = _least_sides(geometry, margin)
    if not grid or any(room < side for room, side in zip(rooms, least, strict=True)):
        return None
    usual = max(USUAL_SIDE, *least)
    descending = [(side, ENOUGH) for side in range(usual, 0, -1)]
    ascending = [(side, BARELY) for side in range(usual + 1, max(rooms) + 1)]
    for side, enough in descending + ascending:
        sides = tuple(min(room, max(side, low)) for room, low in zip(rooms, least, strict=True))
        numbers = channels * element_count(sides)
        dimensions = input_shape[0] * element_count(_touched(geometry, sides))
        if enough * dimensions <= numbers <= MOST_NUMBERS:
            return Window(tuple(start for start, _ in spans), sides, dimensions)
    return None


def published_space(layer: FirstLayer, window: Window) -> Array:
    """An orthonormal basis, (rank, channels, positions), of the row space by the layer's own weights."""
    columns = sparse_layer_matrix(_precise(layer))[:, window.columns(layer.output_shape)].toarray()
    touched = columns[np.abs(columns).max(axis=1) > 0]
    return _basis(touched, len(touched), layer.channels)


def delivered_space(
    augmented: AugmentedLayer, window: Window, rng: np.random.Generator, rank: int | None = None
) -> Array:
    """The same by the augmented layer, whose rows are first mixed at random into fewer."""
    columns = augmented.columns(window.columns(augmented.output_shape))
    mixing = rng.normal(size=(OVERSAMPLING * window.dimensions, len(columns))).astype(np.float32)
    rows = columns if len(columns) <= len(mixing) else mixing @ columns.astype(np.float32, copy=False)
    return _basis(rows.astype(np.float64), rank or window.dimensions, augmented.output_shape[0])


class Stack(NamedTuple):
    """Columns of which the kappa bands, side by side, span a space smaller than they have numbers."""

    columns: Indices
    layout: Layout
    space: Array  # (rank, channels, positions x kappa), by the layer's own weights


def find_stack(layer: FirstLayer, layout: Layout) -> Stack | None:
    """Columns whose bands show a row space; None if there are none, or too many."""
    matrix = sparse_layer_matrix(_precise(layer)).tocsc()
    for window in _centred_windows(layer.output_grid):
        columns = window.columns(layer.output_shape)
        if len(columns) * layout.blocks > MOST_NUMBERS:
            continue
        rows = _stacked(matrix[:, columns].toarray(), layout)
        rows = rows[np.abs(rows).max(axis=1) > 0]
        if 0 < BARELY * len(rows) <= np.count_nonzero(np.abs(rows).max(axis=0, initial=0)):
            return Stack(columns, layout, _basis(rows, len(rows), layer.channels))
    return None


def delivered_stack(augmented: AugmentedLayer, stack: Stack, rng: np.random.Generator) -> Array:
    """The space of a stack by the augmented layer."""
    rows = _stacked(augmented.columns(stack.columns).astype(np.float64), stack.layout)
    mixing = rng.normal(size=(OVERSAMPLING * len(stack.space), len(rows)))
    mixed = rows if len(rows) <= len(mixing) else mixing @ rows
    return _basis(mixed, len(stack.space), augmented.output_shape[0])


def _centred_windows(grid: Shape) -> Iterator[Window]:
    """Windows around the middle of the grid, the largest first; the only one of a Linear layer."""
    for side in range(min(USUAL_SIDE, max(grid, default=1)), 0, -1):
        sides = tuple(min(side, most) for most in grid)
        yield Window(tuple((most - own) // 2 for most, own in zip(grid, sides, strict=True)), sides, 0)


def _stacked(matrix: Array, layout: Layout) -> Array:
    """Bands side by side, (elements, outputs) to (q, outputs x kappa): each column is cut like a sample."""
    return layout.to_blocks(matrix.T).T


def _basis(rows: Array, most: int, channels: int) -> Array:
    across, small = np.linalg.qr(rows.T)  # quicker than singular vectors of the whole
    left, singular, _ = np.linalg.svd(small, full_matrices=False)
    rank = int((singular[:most] > NOTHING * max(singular[0], 1e-300)).sum())
    return np.asarray((across @ left[:, :rank]).T).reshape(rank, channels, -1)


def _precise(layer: FirstLayer) -> FirstLayer:
    """The layer in 64 bits."""
    weight = layer.ungrouped_weight.astype(np.float64)
    return LayerGeometry.of(layer).layer(weight, None, layer.input_shape)


def _least_sides(geometry: LayerGeometry, margin: int | None) -> Shape:
    if margin is None:
        return (1,) * len(geometry.kernel)
    return tuple(
        dilation * (kernel - 1) // stride + 1 + margin
        for kernel, dilation, stride in zip(
            geometry.kernel, geometry.dilation, geometry.stride, strict=True
        )
    )


def _touched(geometry: LayerGeometry, sides: Shape) -> Shape:
    """How many input positions along each axis a window depends on; with dilation there may be gaps."""
    return tuple(
        len({stride * at + dilation * tap for at in range(side) for tap in range(kernel)})
        for side, stride, dilation, kernel in zip(
            sides, geometry.stride, geometry.dilation, geometry.kernel, strict=True
        )
    )


def _inside(geometry: LayerGeometry, axis: int, inputs: Shape, outputs: Shape) -> tuple[int, int]:
    """First and last output position (and one) along an axis that do not touch the padding."""
    stride, before = geometry.stride[axis], geometry.padding[axis][0]
    span = geometry.dilation[axis] * (geometry.kernel[axis] - 1) + 1
    first = -(-before // stride)
    last = (inputs[axis] + before - span) // stride
    return first, min(last + 1, outputs[axis])
