"""The sizes of an augmented layer in tiles, from which its costs follow. The paper has no tiles."""

from dataclasses import dataclass

from mole.errors import ParameterError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import TilesLayout
from mole.scheme.shapes import Shape, element_count, shape_text
from mole.scheme.tile_geometry import TileGeometry
from mole.scheme.tile_kernel import check_tiles


@dataclass(frozen=True, kw_only=True)
class TileSizes:
    """A convolution over tiles in place of a first layer.

    ResNet's first layer on ImageNet:

    >>> sizes = TileSizes.conv(
    ...     input_shape=(3, 224, 224), channels=64, kernel=7, stride=2, padding=3, tile=8
    ... )
    >>> sizes
    TileSizes(tile=8, tiles=784, layer_elements=1769472, output_tiles=784)
    >>> f"{sizes.macs:,}"
    '1,387,266,048'

    Attributes:
        tile: side of a tile.
        tiles: tiles of a sample: kappa.
        layer_elements: of the augmented layer, which is the kernel of that convolution.
        output_tiles: tiles of features, for each of which every element of the layer is used once.
    """

    tile: int
    tiles: int
    layer_elements: int
    output_tiles: int

    @classmethod
    def of(cls, layer: FirstLayer, tile: int) -> "TileSizes":
        """The sizes that a first layer has in tiles of this side.

        Raises:
            UnsupportedLayerError: if tiles are not for this layer.
        """
        check_tiles(layer, TilesLayout.of_side(layer.input_shape, tile))
        return cls._of(LayerGeometry.of(layer), layer.input_shape, layer.channels, tile)

    @classmethod
    def conv(
        cls, *, input_shape: Shape, channels: int, kernel: int, tile: int, stride: int = 1, padding: int = 0
    ) -> "TileSizes":
        """The sizes of a convolution with a square kernel, on any number of axes; no weights needed."""
        axes = len(input_shape) - 1
        geometry = LayerGeometry(
            (kernel,) * axes, (stride,) * axes, ((padding, padding),) * axes, (1,) * axes
        )
        return cls._of(geometry, input_shape, channels, tile)

    @classmethod
    def _of(cls, geometry: LayerGeometry, input_shape: Shape, channels: int, tile: int) -> "TileSizes":
        layout, tiles = TilesLayout.of_side(input_shape, tile), TileGeometry(geometry, tile)
        grid = geometry.output_grid(input_shape[1:])
        if min(grid) < 1:
            raise ParameterError(f"the kernel does not fit on a sample of {shape_text(input_shape)}")
        output_tiles = (-(-side // size) for side, size in zip(grid, tiles.features_per_tile, strict=True))
        return cls(
            tile=tile,
            tiles=layout.kappa,
            layer_elements=element_count(tiles.kernel_shape(channels, input_shape[0])),
            output_tiles=element_count(tuple(output_tiles)),
        )

    @property
    def macs(self) -> int:
        """Multiplications of the augmented layer for an image; zeros beyond the edge count, as is usual."""
        return self.layer_elements * self.output_tiles
