"""The augmented layer of a convolution in the `tiles` layout: a convolution over the grid of tiles.

Every tile of the image becomes one position with q = channels t^axes values. An output tile holds the
features of the t / stride positions along each axis that belong to it, and depends on its own tile and on a
few neighbours, as far as the kernel reaches. One core morphs all tiles, so how it depends on them is the
same everywhere: a kernel of a few tiles. Zero padding stays zero padding: a tile of zeros morphs to zeros.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError, UnsupportedLayerError
from mole.limits import MAX_GATHERED
from mole.scheme.convolution import Convolution
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import Indices, ShuffledTilesLayout, TilesLayout
from mole.scheme.linear_parts import LinearPart
from mole.scheme.morphing import Morphing, narrow
from mole.scheme.shapes import Array, FloatType, Shape, element_count, shape_text
from mole.scheme.tile_geometry import TileGeometry


@dataclass(frozen=True, eq=False)
class TileKernel(LinearPart):
    """C^ac as a convolution over tiles.

    Attributes:
        kernel: (channels x features of a tile, q, *tiles).
        layout: how samples are cut.
        geometry: the first layer's.
        output_shape: of the features of one sample.
    """

    kernel: Array
    layout: TilesLayout
    geometry: LayerGeometry
    output_shape: Shape

    def __post_init__(self) -> None:
        if {len(self.layout.input_shape), len(self.output_shape)} != {len(self.geometry.kernel) + 1}:
            ours = len(self.geometry.kernel)
            raise ShapeError(f"a kernel of {ours} axes does not lead to features {self.output_shape}")
        _refuse_halo(self.tiles, self.layout)
        expected = self.tiles.kernel_shape(self.output_shape[0], self.layout.input_shape[0])
        if self.kernel.shape != expected:
            tile, shape = self.layout.tile, self.kernel.shape
            raise ShapeError(f"tiles of side {tile} need a kernel of shape {expected}, not {shape}")

    @property
    def tiles(self) -> TileGeometry:
        """How it looks from one tile to the next."""
        return TileGeometry(self.geometry, self.layout.tile)

    @property
    def _output_tiles(self) -> Shape:
        """Tiles of features along each axis; the last may be cut off."""
        pairs = zip(self.output_shape[1:], self.tiles.features_per_tile, strict=True)
        return tuple(-(-side // per_tile) for side, per_tile in pairs)

    def features(self, rows: Array) -> Array:
        """For each tile of the kernel a product with all tiles of the samples."""
        count, outputs = len(rows), self.kernel.shape[0]
        grid = self.layout.to_blocks(rows).reshape(count, *self.layout.tile_grid, -1)
        found = np.zeros((count, *self._output_tiles, outputs), np.result_type(rows, self.kernel))
        for offset in self.tiles.offsets():
            there, here = self._overlap(offset)
            weight = np.ascontiguousarray(_by_tile(self.kernel)[offset].T)
            tiles = grid[(slice(None), *there)]
            product_of_all = tiles.reshape(-1, self.layout.block) @ weight  # one, where a stack takes many
            found[(slice(None), *here)] += product_of_all.reshape(*tiles.shape[:-1], outputs)
        return self._depth_to_space(found)

    def rows(self, indices: Indices) -> Array:
        """The kernel as a single element of a tile meets it, put where the tiles stand that it reaches."""
        home, within = np.divmod(self.layout.positions[np.asarray(indices)], self.layout.block)
        tile = np.unravel_index(home, self.layout.tile_grid)
        spread = np.zeros((len(home), *self._output_tiles, self.kernel.shape[0]), self.kernel.dtype)
        for offset in self.tiles.offsets():
            at = [
                own - reach.first - step
                for own, reach, step in zip(tile, self.tiles.reach, offset, strict=True)
            ]
            inside = _inside(at, self._output_tiles)
            where = tuple(one[inside] for one in at)
            spread[(np.flatnonzero(inside), *where)] = _by_tile(self.kernel)[offset].T[within[inside]]
        return self._depth_to_space(spread)

    def columns(self, indices: Indices) -> Array:
        """The kernel of each output, put where its tile stands."""
        channel, *position = np.unravel_index(np.asarray(indices), self.output_shape)
        per_tile = self.tiles.features_per_tile
        tile = [at // size for at, size in zip(position, per_tile, strict=True)]
        within = [at % size for at, size in zip(position, per_tile, strict=True)]
        output = np.ravel_multi_index((channel, *within), (self.output_shape[0], *per_tile))
        grid = self.layout.tile_grid
        spread = np.zeros((len(output), *grid, self.layout.block), self.kernel.dtype)
        for offset in self.tiles.offsets():
            at = [
                own + reach.first + step
                for own, reach, step in zip(tile, self.tiles.reach, offset, strict=True)
            ]
            inside = _inside(at, grid)
            where = tuple(one[inside] for one in at)
            spread[(np.flatnonzero(inside), *where)] = _by_tile(self.kernel)[offset][output[inside]]
        return self.layout.to_rows(spread).T

    def _overlap(self, offset: Shape) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Input tiles that exist under one tile of the kernel, and the output tiles that these reach."""
        there, here = [], []
        for step, reach, inputs, outputs in zip(
            offset, self.tiles.reach, self.layout.tile_grid, self._output_tiles, strict=True
        ):
            shift = reach.first + step
            start, stop = max(0, -shift), min(outputs, inputs - shift)
            here.append(slice(start, max(start, stop)))
            there.append(slice(start + shift, max(start, stop) + shift))
        return tuple(there), tuple(here)

    def _depth_to_space(self, found: Array) -> Array:
        """Features tile by tile, (b, *tiles, outputs), as features position by position, (b, outputs)."""
        count, axes, per_tile = len(found), self.tiles.axes, self.tiles.features_per_tile
        cut = found.reshape(count, *self._output_tiles, self.output_shape[0], *per_tile)
        order = [at for axis in range(axes) for at in (1 + axis, 2 + axes + axis)]
        whole = cut.transpose(0, axes + 1, *order).reshape(
            count,
            self.output_shape[0],
            *(tiles * size for tiles, size in zip(self._output_tiles, per_tile, strict=True)),
        )
        inner = tuple(slice(side) for side in self.output_shape[1:])
        return whole[(slice(None), slice(None), *inner)].reshape(count, -1)


def build_tile_kernel(
    layer: FirstLayer,
    morphing: Morphing,
    channel_order: npt.NDArray[np.intp],
    stored: FloatType,
) -> Array:
    """The kernel: what the first layer makes of each row of the inverse core, as a tile among zeros."""
    layout = morphing.layout
    if not isinstance(layout, TilesLayout):
        raise ParameterError(f"a key with blocks of {layout.name} does not make a kernel of tiles")
    check_tiles(layer, layout)
    compute = np.result_type(stored, np.float32)
    tiles = TileGeometry(LayerGeometry.of(layer), layout.tile)
    windows = FirstLayer.conv(
        layer.weight,
        None,
        input_shape=(layer.input_channels, *tiles.window_sides),
        stride=layer.stride,
        dilation=layer.dilation,
        groups=layer.groups,
    )
    convolution = Convolution(windows, dtype=compute, channel_order=channel_order)
    tile_shape = (layout.block, layer.input_channels, *(layout.tile,) * tiles.axes)
    inverse = morphing.core.inverse.astype(compute).reshape(tile_shape)
    kernel = np.empty(tiles.kernel_shape(layer.channels, layer.input_channels), stored)
    for offset in tiles.offsets():
        made = convolution(_in_window(inverse, tiles, offset).reshape(layout.block, -1))
        _by_tile(kernel)[offset] = narrow(made, stored).reshape(layout.block, -1).T
    return kernel


def _by_tile(kernel: Array) -> Array:
    """A view of a kernel with its tiles in front: (*tiles, outputs, q)."""
    return np.moveaxis(kernel, (0, 1), (-2, -1))


def _inside(at: list[Indices], grid: Shape) -> npt.NDArray[np.bool_]:
    """Which places, given by their coordinates along each axis, lie on a grid."""
    each = [(one >= 0) & (one < side) for one, side in zip(at, grid, strict=True)]
    return np.asarray(np.all(each, axis=0))


def check_tiles(layer: FirstLayer, layout: TilesLayout) -> None:
    """Refuse a layer that cannot be augmented in tiles.

    Raises:
        UnsupportedLayerError: with the reason.
    """
    _refuse_halo(TileGeometry(LayerGeometry.of(layer), layout.tile), layout)
    if len(layer.input_shape) != len(layer.kernel) + 1:
        raise UnsupportedLayerError(
            "this first layer cannot be used with tiles",
            ["its samples have no axis of channels: use blocks of rows"],
        )
    window = TileGeometry(LayerGeometry.of(layer), layout.tile).window_sides
    if layout.block * layer.input_channels * element_count(window) > MAX_GATHERED:
        raise UnsupportedLayerError(
            "this first layer cannot be used with these tiles",
            [f"its kernel reaches over {shape_text(window)} positions from each tile, which is too far"],
        )


def _refuse_halo(tiles: TileGeometry, layout: TilesLayout) -> None:
    """Shuffled tiles are for layers that look at each tile by itself."""
    if isinstance(layout, ShuffledTilesLayout) and tiles.has_halo:
        kernel, stride = (shape_text(sides) for sides in (tiles.layer.kernel, tiles.layer.stride))
        raise UnsupportedLayerError(
            "this first layer cannot be used with shuffled tiles",
            [
                f"its kernel {kernel} with stride {stride} and its padding look beyond a tile of side "
                f"{tiles.tile}, at neighbours that would be others: use tiles that are not shuffled"
            ],
        )


def _in_window(tiles_of_inverse: Array, tiles: TileGeometry, offset: Shape) -> Array:
    """Tiles, (q, channels, t, ...), where the window meets one tile of the kernel; zeros elsewhere."""
    window = np.zeros((*tiles_of_inverse.shape[:2], *tiles.window_sides), tiles_of_inverse.dtype)
    source, target = [], []
    for step, start, length in zip(offset, tiles.window_starts, tiles.window_sides, strict=True):
        at = step * tiles.tile - start  # where the tile begins in the window
        low, high = max(0, at), min(length, at + tiles.tile)
        target.append(slice(low, max(low, high)))
        source.append(slice(low - at, max(low, high) - at))
    window[(slice(None), slice(None), *target)] = tiles_of_inverse[(slice(None), slice(None), *source)]
    return window
