"""Finds the two factors of C^ac (`mole.scheme.factored`), by a rule that asks for nothing but C^ac.

There are many bases of the columns at one position, and the columns of M^-1 are among them: handing those
over would show more than C^ac does. So the basis is made from columns of C^ac alone. Each is taken to be of
length one; of those that are left, the longest joins the basis (the first of them, where several are as
long), and the others lose what it explains, until nothing is left. Whoever has C^ac can work out the same
factors (`factors_of`): they show nothing that it does not.

The provider finds them without C^ac. With A for the columns of M^-1 under the window and W for the kernels,
C^ac is A W' at that position. If A = Q R and Q has orthonormal columns, the rule gives the same for the
small matrix R W' as for Q R W', but for a factor Q.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mole.scheme.convolution import window_elements
from mole.scheme.first_layer import FirstLayer
from mole.scheme.morphing import Morphing, narrow
from mole.scheme.shapes import Array, FloatType, Shape
from mole.scheme.sharing_out import shared_out

GATHERED_BYTES = 4_000_000  # columns of M^-1 that a thread works on at a time
AS_LONG = 1e-6  # so little, relatively, makes no column the longer one
NOTHING = 1e-9  # of a column of length one: what is left of it through rounding


class Factors(NamedTuple):
    """Basis, (input elements, positions x components), and mixing, (positions, components, channels)."""

    basis: Array
    mixing: Array


def factors_of(matrix: Array, output_shape: Shape, components: int) -> Factors:
    """The factors of a C^ac that is there, (input elements, output elements): for tests and for doubters.

    Two channels at one position, the second twice the first:

    >>> factors = factors_of(np.array([[3.0, 6.0], [4.0, 8.0]]), (2, 1), 1)
    >>> factors.basis.round(6).tolist(), factors.mixing.round(6).tolist()
    ([[6.0], [8.0]], [[[0.5, 1.0]]])
    """
    columns = matrix.astype(np.float64).reshape(len(matrix), output_shape[0], -1).transpose(2, 0, 1)
    basis, mixing = _factored(columns, components)
    return Factors(basis.transpose(1, 0, 2).reshape(len(matrix), -1), mixing)


def build_factors(
    layer: FirstLayer,
    morphing: Morphing,
    channel_order: npt.NDArray[np.intp],
    stored: FloatType,
    empty: Array,
) -> Factors:
    """The factors of M^-1 C, shuffled, by threads that each fill a few positions.

    Args:
        layer: the first layer.
        morphing: in blocks of rows.
        channel_order: of the augmented layer.
        stored: what the numbers are stored as.
        empty: room for the basis, all zero: (input elements, positions, components).
    """
    elements, positions, components = empty.shape
    side = morphing.layout.block
    compute = np.result_type(stored, np.float32)
    inverse = np.ascontiguousarray(morphing.core.inverse.T)  # a column of the inverse core is a row of this
    rounded = inverse.astype(compute, copy=False)
    kernels = layer.ungrouped_weight[channel_order].astype(np.float64).reshape(layer.channels, -1).T
    blocks, within = np.divmod(window_elements(layer), side)  # block -1 is padding
    mixing = np.empty((positions, components, layer.channels), stored)
    taps = len(kernels)
    at_once = max(1, GATHERED_BYTES // (8 * taps * max(side, layer.channels)))

    def fill(start: int) -> None:
        part = slice(start, start + at_once)
        triangle = _triangle(inverse[within[part]], blocks[part])
        small = triangle @ (kernels * (blocks[part] >= 0)[..., np.newaxis])
        basis, mixed = _factored(small, components)
        mixing[part] = narrow(mixed, stored)
        of_taps = narrow(np.linalg.solve(triangle, basis), compute)
        columns = rounded[within[part]].transpose(0, 2, 1)
        for block in np.unique(blocks[part][blocks[part] >= 0]):
            here = (blocks[part] == block)[..., np.newaxis]
            found = empty[block * side : (block + 1) * side, part].transpose(1, 0, 2)
            if stored == compute:
                np.matmul(columns, of_taps * here, out=found)
                narrow(found, stored)  # checks that it fits
            else:
                found[:] = narrow(columns @ (of_taps * here), stored)

    with (
        np.errstate(over="ignore", invalid="ignore"),
        shared_out(at_once) as share,
    ):  # `narrow` says it better
        share(fill, 0, positions)
    return Factors(empty.reshape(elements, positions * components), mixing)


def _triangle(columns: Array, blocks: npt.NDArray[np.intp]) -> Array:
    """R of A = Q R at some positions, from columns of the inverse core and the blocks they are in."""
    gram = columns @ columns.transpose(0, 2, 1)
    gram *= (blocks[:, :, np.newaxis] == blocks[:, np.newaxis]) & (blocks >= 0)[..., np.newaxis]
    gram += np.eye(gram.shape[1]) * (blocks < 0)[..., np.newaxis]  # padding: any length will do
    return np.linalg.cholesky(gram).transpose(0, 2, 1)


def _factored(columns: Array, components: int) -> tuple[Array, Array]:
    """Basis, (n, rows, components), and mixing, (n, components, channels), of (n, rows, channels)."""
    lengths = np.linalg.norm(columns, axis=1, keepdims=True)
    left = columns / np.where(lengths > 0, lengths, 1.0)
    basis = np.zeros((*columns.shape[:2], components))
    each = np.arange(len(columns))
    for step in range(components):
        squares = np.einsum("nrc,nrc->nc", left, left)
        longest = squares.max(axis=1, keepdims=True)
        chosen = np.argmax(squares >= longest * (1 - AS_LONG), axis=1)
        new = left[each, :, chosen]
        new -= np.einsum("nrk,nk->nr", basis, np.einsum("nrk,nr->nk", basis, new))  # what rounding left
        length = np.linalg.norm(new, axis=1, keepdims=True)
        new = np.where(longest > NOTHING**2, new / np.where(length > 0, length, 1.0), 0.0)
        basis[:, :, step] = new
        left -= new[:, :, np.newaxis] * np.einsum("nr,nrc->nc", new, left)[:, np.newaxis]
    longest = lengths.max(axis=2, keepdims=True)  # so that no number of the mixing is larger than 1
    mixing = basis.transpose(0, 2, 1) @ columns / np.where(longest > 0, longest, 1.0)
    return basis * longest, mixing
