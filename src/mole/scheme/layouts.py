"""Layouts: which elements of a sample each block covers.

The core meets a sample block by block. In the `rows` layout, the paper's, a block is a run of consecutive
elements of the row vector. In the `tiles` layout it is a square of pixels in all channels, so that the
augmented layer of a convolution is a convolution again, and large images become possible; `shuffled-tiles`
are tiles in a secret order. Everything that has to know where a block lies (morphing, whitening, the
augmented layer, the attacks) asks a `Layout`, so another layout is one more class here and one more name.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.foreign_text import shown
from mole.quantities import joined
from mole.scheme.shapes import Array, Shape, block_size, divisors, element_count, rows_of, shape_text

LayoutName = Literal["rows", "tiles", "shuffled-tiles"]
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
    moves: ClassVar[bool] = True
    """Whether cutting moves elements; where it does not, blocks are a view of the samples."""

    @staticmethod
    def of(name: str, input_shape: Shape, kappa: int) -> "Layout":
        """The layout of this name, as it stands in keys, manifests and layer files."""
        for kind in (RowsLayout, TilesLayout, ShuffledTilesLayout):
            if kind.name == name:
                return kind(input_shape, kappa)
        raise ParameterError(f"layout '{shown(name)}' is unknown: use {joined([*LAYOUTS], 'or')}")

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

    def to_blocks(self, samples: Array, out: Array | None = None) -> Array:
        """Samples cut into blocks: (n, *input_shape) or (n, elements) to (n blocks, q).

        They go into `out` if it is given, an array in row-major order.
        """
        blocks = rows_of(samples, self.input_shape)[:, self.places].reshape(-1, self.block)
        return blocks if out is None else _filled(out, blocks)

    def to_rows(self, blocks: Array, out: Array | None = None) -> Array:
        """Undo `to_blocks`: (n blocks, q) to row vectors, (n, elements), in `out` if it is given."""
        whole = self._whole(blocks)
        rows = np.empty_like(whole) if out is None else out
        rows[:, self.places.ravel()] = whole
        return rows

    def inverse_rows(self, core_inverse: Array, start: int, stop: int) -> Array:
        """Rows `start` to `stop` of M^-1, (stop - start, elements), from the inverse core, (q, q)."""
        home, within = np.divmod(self.positions[start:stop], self.block)
        spread = np.zeros((len(home), self.blocks, self.block), core_inverse.dtype)
        spread[np.arange(len(home)), home] = core_inverse[within]
        return self.to_rows(spread)

    @cached_property
    def positions(self) -> Indices:
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
    moves = False

    @property
    def places(self) -> Indices:
        """Consecutive places, block after block."""
        return np.arange(self.elements).reshape(self.blocks, self.block)

    def to_blocks(self, samples: Array, out: Array | None = None) -> Array:
        """Samples cut into blocks, as a view where NumPy can make one."""
        blocks = rows_of(samples, self.input_shape).reshape(-1, self.block)
        return blocks if out is None else _filled(out, blocks)

    def to_rows(self, blocks: Array, out: Array | None = None) -> Array:
        """Undo `to_blocks`, as a view where NumPy can make one."""
        rows = self._whole(blocks)
        return rows if out is None else _filled(out, rows)

    def inverse_rows(self, core_inverse: Array, start: int, stop: int) -> Array:
        """Rows of M^-1; with a single block these are rows of the inverse core itself."""
        if self.blocks == 1:
            return core_inverse[start:stop]
        return super().inverse_rows(core_inverse, start, stop)


class TilesLayout(Layout):
    """Tiles of t pixels along each axis, in all channels: q = channels t^axes.

    The core stands once for each tile, so kappa is the number of tiles and says how large they are. Morphed
    values stand where their tile stood, so that a sample keeps its shape.

    >>> layout = TilesLayout.of_side((1, 2, 4), 2)
    >>> layout.kappa, layout.tile, layout.tile_grid
    (2, 2, (1, 2))
    >>> layout.to_blocks(np.arange(8.0).reshape(1, 1, 2, 4))
    array([[0., 1., 4., 5.],
           [2., 3., 6., 7.]])
    """

    name: ClassVar[LayoutName] = "tiles"

    @classmethod
    def of_side(cls, input_shape: Shape, tile: int) -> "TilesLayout":
        """The layout whose tiles have this side.

        Raises:
            ParameterError: if samples of this shape have no such tiles, with the sides that they have.
        """
        sides = tile_sides(input_shape)
        if tile not in sides:
            known = [str(side) for side in sides if side > 1]
            advice = f"use {joined(known, 'or')}" if known else "use blocks of rows"
            raise ParameterError(
                f"a {shape_text(input_shape)} sample cannot be cut into tiles of side {tile}: {advice}"
            )
        return cls(input_shape, element_count(input_shape[1:]) // tile ** (len(input_shape) - 1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.block == self._block_of(tile) for tile in tile_sides(self.input_shape)):
            shape = shape_text(self.input_shape)
            raise ParameterError(f"kappa = {self.kappa} does not cut a {shape} sample into square tiles")

    @cached_property
    def tile(self) -> int:
        """The side of a tile, in pixels: t."""
        return next(tile for tile in tile_sides(self.input_shape) if self.block == self._block_of(tile))

    @property
    def tile_grid(self) -> Shape:
        """How many tiles stand along each axis."""
        return tuple(side // self.tile for side in self.input_shape[1:])

    @property
    def places(self) -> Indices:
        """Tile after tile, each channel by channel and row by row."""
        return self._cut(np.arange(self.elements).reshape(1, -1))

    def to_blocks(self, samples: Array, out: Array | None = None) -> Array:
        """Samples cut into tiles: one transposition."""
        return self._cut(rows_of(samples, self.input_shape), out)

    def to_rows(self, blocks: Array, out: Array | None = None) -> Array:
        """Undo `to_blocks`."""
        whole = self._whole(blocks)
        rows = np.empty_like(whole) if out is None else out
        self._move(rows, whole, is_cutting=False)
        return rows

    def _cut(self, rows: npt.NDArray[Any], out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        blocks = np.empty((len(rows) * self.blocks, self.block), rows.dtype) if out is None else out
        self._move(rows, blocks, is_cutting=True)
        return blocks

    def _move(self, rows: npt.NDArray[Any], blocks: npt.NDArray[Any], *, is_cutting: bool) -> None:
        """Copy rows into blocks, or blocks into rows; a line of a tile moves as one piece where it can."""
        is_plain = rows.flags.c_contiguous and blocks.flags.c_contiguous and rows.dtype == blocks.dtype
        length = 1 if is_plain else self.tile
        if is_plain:
            line = np.dtype((np.void, self.tile * rows.itemsize))
            rows, blocks = rows.view(line), blocks.view(line)
        sides = (*self._cut_shape[:-1], length)
        samples = rows.reshape(-1, *sides).transpose(0, *(axis + 1 for axis in self._tiles_first))
        tiles = blocks.reshape(samples.shape)
        into, source = (tiles, samples) if is_cutting else (samples, tiles)
        np.copyto(into, source, casting="same_kind")

    def _block_of(self, tile: int) -> int:
        return int(self.input_shape[0] * tile ** (len(self.input_shape) - 1))

    @property
    def _cut_shape(self) -> Shape:
        """A sample with each axis cut in two: (channels, tiles, t, tiles, t)."""
        halves = ((count, self.tile) for count in self.tile_grid)
        return (self.input_shape[0], *(side for pair in halves for side in pair))

    @property
    def _tiles_first(self) -> tuple[int, ...]:
        """Axes of a cut sample in the order of its blocks: (tiles, tiles, channels, t, t)."""
        axes = len(self.tile_grid)
        return (*range(1, 2 * axes, 2), 0, *range(2, 2 * axes + 1, 2))


class ShuffledTilesLayout(TilesLayout):
    """Tiles that stand in each other's places, in an order that only the key knows (`Morphing.tile_order`).

    It is for layers that look at each tile by itself: patch embeddings. Their features come in that order.
    """

    name = "shuffled-tiles"


def _filled(out: Array, values: Array) -> Array:
    np.copyto(out, values.reshape(out.shape), casting="same_kind")
    return out


TILED = (TilesLayout.name, ShuffledTilesLayout.name)


def tile_sides(input_shape: Shape) -> tuple[int, ...]:
    """Every side that the tiles of a sample could have: what divides all of its axes but the first.

    >>> tile_sides((3, 32, 48)), tile_sides((784,))
    ((1, 2, 4, 8, 16), ())
    """
    return divisors(math.gcd(*input_shape[1:]))
