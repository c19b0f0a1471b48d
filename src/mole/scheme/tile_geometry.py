"""How a convolution looks from one tile to the next: which tiles the features of a tile depend on."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from mole.errors import UnsupportedLayerError
from mole.scheme.geometry import LayerGeometry
from mole.scheme.shapes import Shape, element_count, shape_text


class Reach(NamedTuple):
    """Which tiles an output tile depends on along one axis: so many, from the first (0 is its own)."""

    first: int
    tiles: int


@dataclass(frozen=True)
class TileGeometry:
    """How a convolution looks from one tile to the next.

    >>> stem = LayerGeometry(kernel=(7, 7), stride=(2, 2), padding=((3, 3), (3, 3)), dilation=(1, 1))
    >>> tiles = TileGeometry(stem, 8)
    >>> tiles.reach[0], tiles.features_per_tile
    (Reach(first=-1, tiles=3), (4, 4))
    >>> patches = LayerGeometry(kernel=(16, 16), stride=(16, 16), padding=((0, 0),) * 2, dilation=(1, 1))
    >>> TileGeometry(patches, 16).reach[0]
    Reach(first=0, tiles=1)

    Attributes:
        layer: kernel, stride and so on of the first layer.
        tile: side of a tile.
    """

    layer: LayerGeometry
    tile: int

    def __post_init__(self) -> None:
        if not self.layer.kernel:
            raise UnsupportedLayerError(
                "this first layer cannot be used with tiles",
                ["a Linear layer looks at the whole sample at once: use blocks of rows"],
            )
        if any(self.tile % stride for stride in self.layer.stride):
            raise UnsupportedLayerError(
                "this first layer cannot be used with these tiles",
                [f"its stride {shape_text(self.layer.stride)} does not divide tiles of side {self.tile}"],
            )

    @property
    def axes(self) -> int:
        """How many axes a tile has."""
        return len(self.layer.kernel)

    @property
    def features_per_tile(self) -> Shape:
        """Output positions along each axis of a tile."""
        return tuple(self.tile // stride for stride in self.layer.stride)

    @property
    def reach(self) -> tuple[Reach, ...]:
        """Which tiles an output tile depends on, along each axis."""
        spans = zip(self.layer.padding, self.window_sides, strict=True)
        first = [
            (-before // self.tile, (length - before - 1) // self.tile) for (before, _), length in spans
        ]
        return tuple(Reach(low, high - low + 1) for low, high in first)

    @property
    def has_halo(self) -> bool:
        """Whether features of a tile depend on other tiles, or on zeros around the sample."""
        return self.reach != (Reach(0, 1),) * self.axes or any(map(any, self.layer.padding))

    @property
    def window_sides(self) -> Shape:
        """Input positions along each axis that the features of one tile depend on, first to last."""
        numbers = zip(self.layer.kernel, self.layer.stride, self.layer.dilation, strict=True)
        return tuple(
            self.tile - stride + dilation * (kernel - 1) + 1 for kernel, stride, dilation in numbers
        )

    @property
    def window_starts(self) -> Shape:
        """Where these begin, counted from the first tile that they reach."""
        pairs = zip(self.layer.padding, self.reach, strict=True)
        return tuple(-before - reach.first * self.tile for (before, _), reach in pairs)

    def kernel_shape(self, channels: int, input_channels: int) -> Shape:
        """Shape of the convolution over tiles, as PyTorch has it."""
        outputs = channels * element_count(self.features_per_tile)
        return outputs, input_channels * self.tile**self.axes, *(reach.tiles for reach in self.reach)

    def offsets(self) -> Iterator[Shape]:
        """Each tile of the kernel."""
        return product(*(range(reach.tiles) for reach in self.reach))
