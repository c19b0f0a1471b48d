"""The row space of the augmented layer: the same as the first layer's, whatever the key.

C^ac = M^-1 C P, and multiplying by an invertible matrix from the left changes no row space. A few output
pixels are enough to see it: the columns of a small window depend on few input elements only, so they span a
space far smaller than the window has numbers.
"""

from typing import NamedTuple

import numpy as np

from mole.attacks.views import LayerGeometry
from mole.augmented import AugmentedLayer
from mole.d2r import layer_matrix
from mole.geometry import Array, Shape, element_count
from mole.layer import FirstLayer

LARGEST_SIDE = 6
OVERSAMPLING = 2  # rows of the random projection, for each dimension of the space
ENOUGH = 1.5  # numbers in a window, for each dimension of the space, from which on the space shows well


class Window(NamedTuple):
    """A block of output positions whose receptive field lies inside of the image, clear of the padding."""

    start: Shape
    sides: Shape
    dimensions: int  # input elements that it depends on

    def columns(self, output_shape: Shape) -> list[int]:
        """Columns of the layer's matrix, channel by channel."""
        index = np.arange(element_count(output_shape)).reshape(output_shape)
        inner = tuple(slice(at, at + side) for at, side in zip(self.start, self.sides, strict=True))
        chosen: list[int] = index[(slice(None), *inner)].ravel().tolist()
        return chosen


def find_window(geometry: LayerGeometry, input_shape: Shape, output_shape: Shape) -> Window | None:
    """A window in which the row space is smaller than the window; None if there is none.

    >>> vgg = LayerGeometry(kernel=(3, 3), stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1))
    >>> find_window(vgg, (3, 32, 32), (64, 32, 32))
    Window(start=(1, 1), sides=(6, 6), dimensions=192)
    >>> patches = LayerGeometry(kernel=(4, 4), stride=(4, 4), padding=((0, 0), (0, 0)), dilation=(1, 1))
    >>> find_window(patches, (3, 32, 32), (48, 8, 8)) is None
    True
    """
    channels, grid = output_shape[0], output_shape[1:]
    spans = [_inside(geometry, axis, input_shape[1:], grid) for axis in range(len(grid))]
    room = min((stop - start for start, stop in spans), default=0)
    for side in range(min(LARGEST_SIDE, room), 0, -1):
        sides = (side,) * len(grid)
        dimensions = element_count((input_shape[0], *_reach(geometry, sides)))
        if channels * element_count(sides) >= ENOUGH * dimensions:
            return Window(tuple(start for start, _ in spans), sides, dimensions)
    return None


def published_space(layer: FirstLayer, window: Window) -> Array:
    """An orthonormal basis, (dimensions, window columns), of the row space by the layer's own weights."""
    part = FirstLayer(
        layer.ungrouped_weight.astype(np.float64), None,
        (layer.input_channels, *_reach(LayerGeometry.of(layer), window.sides)),
        layer.stride, ((0, 0),) * len(window.sides), layer.dilation,
    )  # fmt: skip
    return _basis(layer_matrix(part), window.dimensions)


def delivered_space(augmented: AugmentedLayer, window: Window, rng: np.random.Generator) -> Array:
    """The same by the augmented layer; its rows are mixed at random first, to have fewer."""
    columns = augmented.matrix[:, window.columns(augmented.output_shape)]
    mixing = rng.normal(size=(OVERSAMPLING * window.dimensions, len(columns)))
    return _basis(mixing @ columns, window.dimensions)


def _basis(rows: Array, dimensions: int) -> Array:
    _, singular, basis = np.linalg.svd(rows, full_matrices=False)
    rank = int((singular[:dimensions] > 1e-9 * singular[0]).sum())
    return np.asarray(basis[:rank])


def _reach(geometry: LayerGeometry, sides: Shape) -> Shape:
    """Sides of the receptive field of a window."""
    return tuple(
        stride * (side - 1) + dilation * (kernel - 1) + 1
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
