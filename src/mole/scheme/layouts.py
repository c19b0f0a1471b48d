"""Layouts: which elements of a sample each block covers.

The core meets a sample block by block. In the `rows` layout, the paper's, a block is a run of consecutive
elements of the row vector. Everything that has to know where a block lies (morphing, whitening, the
augmented layer, the attacks) asks a `Layout`, so another layout is one more class here and one more name.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.scheme.shapes import Array, Shape, block_size, element_count, rows_of

LayoutName = Literal["rows"]
LAYOUTS: tuple[LayoutName, ...] = get_args(LayoutName)

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Layout(ABC):
    """How samples of one shape are cut into blocks.

    >>> layout = Layout.of("rows", (1, 2, 3), kappa=2)
    >>> layout.block, layout.blocks
    (3, 2)
    >>> layout.to_blocks(np.arange(6.0).reshape(1, 1, 2, 3))
    array([[0., 1., 2.],
           [3., 4., 5.]])

    A layout has to say its `name` and its `places`; the rest follows from these, and may be overridden by
    something quicker.

    Attributes:
        input_shape: shape of a sample.
        kappa: how many times the core stands on the diagonal.
    """

    input_shape: Shape
    kappa: int

    name: ClassVar[LayoutName]

    @staticmethod
    def of(name: str, input_shape: Shape, kappa: int) -> "Layout":
        """The layout of this name, as it stands in keys, manifests and layer files."""
        for kind in (RowsLayout,):
            if kind.name == name:
                return kind(input_shape, kappa)
        raise ParameterError(f"layout {name!r} is unknown: use {' or '.join(LAYOUTS)}")

    def __post_init__(self) -> None:
        block_size(self.input_shape, self.kappa)

    @property
    def elements(self) -> int:
        """Elements of a sample: the paper's alpha m^2."""
        return element_count(self.input_shape)

    @property
    def block(self) -> int:
        """Elements of a block, and so the side of the core: the paper's q."""
        return block_size(self.input_shape, self.kappa)

    @property
    def blocks(self) -> int:
        """Blocks of a sample: one for each time that the core stands on the diagonal."""
        return self.kappa

    @property
    @abstractmethod
    def places(self) -> Indices:
        """Where the elements of each block stand in the row vector, (blocks, q): each place once."""

    def to_blocks(self, samples: Array) -> Array:
        """Samples cut into blocks: (n, *input_shape) or (n, elements) to (n blocks, q)."""
        return rows_of(samples, self.input_shape)[:, self.places].reshape(-1, self.block)

    def to_rows(self, blocks: Array) -> Array:
        """Undo `to_blocks`: (n blocks, q) to row vectors, (n, elements)."""
        whole = self._whole(blocks)
        rows = np.empty_like(whole)
        rows[:, self.places.ravel()] = whole
        return rows

    def inverse_rows(self, core_inverse: Array, start: int, stop: int) -> Array:
        """Rows `start` to `stop` of M^-1, (stop - start, elements), from the inverse core, (q, q)."""
        home, within = np.divmod(self._positions[start:stop], self.block)
        spread = np.zeros((len(home), self.blocks, self.block), core_inverse.dtype)
        spread[np.arange(len(home)), home] = core_inverse[within]
        return self.to_rows(spread)

    @cached_property
    def _positions(self) -> Indices:
        """For each element of the row vector, where it stands when the blocks are laid end to end."""
        return np.argsort(self.places, axis=None)

    def _whole(self, blocks: Array) -> Array:
        """Blocks laid end to end, a sample each row: (n, elements)."""
        if blocks.shape[-1:] != (self.block,) or blocks.size % self.elements:
            raise ShapeError(
                f"blocks of shape {blocks.shape} do not make whole samples: "
                f"expected {self.blocks} blocks of {self.block} elements for each"
            )
        return blocks.reshape(-1, self.elements)


class RowsLayout(Layout):
    """The paper's layout: block b covers elements b q to (b + 1) q of the row vector.

    Cutting and joining move no element, so neither copies anything.
    """

    name = "rows"

    @property
    def places(self) -> Indices:
        """Consecutive places, block after block."""
        return np.arange(self.elements).reshape(self.blocks, self.block)

    def to_blocks(self, samples: Array) -> Array:
        """Samples cut into blocks, as a view where NumPy can make one."""
        return rows_of(samples, self.input_shape).reshape(-1, self.block)

    def to_rows(self, blocks: Array) -> Array:
        """Undo `to_blocks`, as a view where NumPy can make one."""
        return self._whole(blocks)

    def inverse_rows(self, core_inverse: Array, start: int, stop: int) -> Array:
        """Rows of M^-1; with a single block these are rows of the inverse core itself."""
        if self.blocks == 1:
            return core_inverse[start:stop]
        return super().inverse_rows(core_inverse, start, stop)
