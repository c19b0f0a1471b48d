"""The first layer as one matrix C, so that features = row vector times C (paper, section 3.1).

This is for teaching, for tests and for the red team: at CIFAR size the dense matrix fills 800 MB, and
nothing that the provider or the developer runs needs it.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import MissingExtraError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, element_count

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Indices = npt.NDArray[np.int64]


class Entries(NamedTuple):
    """The entries of C that are not zero by construction: C[row, column] = value."""

    row: Indices
    column: Indices
    value: Array


def layer_matrix(layer: FirstLayer) -> Array:
    """C as a dense array of shape (input elements, output elements), without the bias.

    A 1x2 kernel on one row of three pixels:

    >>> kernel = np.array([[[[10.0, 1.0]]]])
    >>> layer_matrix(FirstLayer.conv(kernel, None, input_shape=(1, 1, 3)))
    array([[10.,  0.],
           [ 1., 10.],
           [ 0.,  1.]])
    """
    entries = layer_entries(layer)
    matrix = np.zeros(_matrix_shape(layer), layer.weight.dtype)
    matrix[entries.row, entries.column] = entries.value
    return matrix


def sparse_layer_matrix(layer: FirstLayer) -> "csr_array":
    """C as a SciPy sparse array: 7 MB instead of 800 MB at CIFAR size. Needs SciPy."""
    try:
        from scipy.sparse import coo_array  # noqa: PLC0415  (an optional dependency)
    except ImportError:
        raise MissingExtraError("the sparse matrix needs SciPy: pip install scipy") from None
    entries = layer_entries(layer)
    return coo_array((entries.value, (entries.row, entries.column)), shape=_matrix_shape(layer)).tocsr()


def layer_entries(layer: FirstLayer) -> Entries:
    """The paper's equation 1, extended to stride, padding, dilation, groups and any number of axes.

    Equation 1 puts the weight k of input channel i, output channel j and kernel position (a, b) at
    row i m^2 + (a + c) m + (b + d) and column j n^2 + c n + d, for every output position (c, d). With
    stride s, padding P and dilation e, the input position of (a, c) is s c + e a - P, and positions
    in the padding drop out.
    """
    group_inputs = layer.weight.shape[1]
    group_outputs = layer.channels // layer.groups
    # One axis more than the weight, for the output position: every tap meets every position.
    output_channel, input_channel, *taps = np.indices(layer.weight.shape)[..., np.newaxis]
    positions = np.indices(layer.output_grid).reshape(
        len(layer.output_grid), element_count(layer.output_grid)
    )

    row = input_channel + (output_channel // group_outputs) * group_inputs
    column = output_channel
    inside = np.ones((1,) * layer.weight.ndim + (positions.shape[1],), dtype=bool)
    for axis, (tap, position) in enumerate(zip(taps, positions, strict=True)):
        at = layer.stride[axis] * position + layer.dilation[axis] * tap - layer.padding[axis][0]
        inside = inside & (at >= 0) & (at < layer.grid[axis])
        row = row * layer.grid[axis] + at
        column = column * layer.output_grid[axis] + position
    full = (*layer.weight.shape, positions.shape[1])
    inside = np.broadcast_to(inside, full)
    return Entries(
        row=np.broadcast_to(row, full)[inside],
        column=np.broadcast_to(column, full)[inside],
        value=np.broadcast_to(layer.weight[..., np.newaxis], full)[inside],
    )


def _matrix_shape(layer: FirstLayer) -> tuple[int, int]:
    return element_count(layer.input_shape), element_count(layer.output_shape)
