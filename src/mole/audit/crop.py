"""A part of each image, where whole ones are too large for attacks: tiles from its middle.

One core morphs every tile, so a crop along the borders of tiles is a morphed image like any other, with the
same core: what works on it works on all tiles. Attacks rebuild the middle, and are scored by it; those that
compare statistics get crops from elsewhere in the image as well, as any attacker has. The augmented layer
of a crop is the delivered one, for fewer tiles (`AugmentedLayer.for_shape`).
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import TilesLayout
from mole.scheme.morphing import Morphing
from mole.scheme.shapes import Shape, element_count, shape_text

ENOUGH = 8192  # crops by which attacks compare statistics
MOST_ELEMENTS = 4096  # of a sample that attacks with whole matrices take without long waits


@dataclass(frozen=True)
class Crop:
    """Which tiles of a sample are attacked.

    >>> crop = Crop.of("tiles", (3, 224, 224), 784)
    >>> crop.input_shape, crop.kappa, str(crop)
    ((3, 32, 32), 16, 'the middle 32x32 pixels, 4x4 of its 28x28 tiles')
    >>> Crop.of("tiles", (3, 32, 32), 16) is None, Crop.of("rows", (3, 224, 224), 1) is None
    (True, True)

    Attributes:
        whole: how whole samples are cut.
        tiles: tiles along each axis that are kept.
    """

    whole: TilesLayout
    tiles: Shape

    @classmethod
    def of(
        cls, layout: str, input_shape: Shape, kappa: int, geometry: LayerGeometry | None = None
    ) -> "Crop | None":
        """As many tiles as attacks can take, and a kernel needs; None where samples are attacked whole."""
        if layout != TilesLayout.name or element_count(input_shape) <= MOST_ELEMENTS:
            return None
        whole = TilesLayout(input_shape, kappa)
        grid = whole.tile_grid
        side = max(side for side in range(1, max(grid) + 1) if _fits(side, grid, whole.block) or side == 1)
        least = (1,) * len(grid) if geometry is None else _spanned(geometry, whole.tile)
        tiles = tuple(min(most, max(side, low)) for most, low in zip(grid, least, strict=True))
        return None if tiles == grid else cls(whole, tiles)

    @property
    def layout(self) -> TilesLayout:
        """How a crop is cut."""
        return TilesLayout.of_side(self.input_shape, self.whole.tile)

    @property
    def input_shape(self) -> Shape:
        """Shape of a crop."""
        return (self.whole.input_shape[0], *(count * self.whole.tile for count in self.tiles))

    @property
    def kappa(self) -> int:
        """Tiles of a crop."""
        return element_count(self.tiles)

    def __call__(self, samples: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The crops of samples, (n, *whole shape), in memory of their own: the rest can go."""
        return np.ascontiguousarray(self._at(samples, self._middle))

    def several(self, samples: npt.NDArray[Any], further: int) -> npt.NDArray[Any]:
        """The middle crop of each sample, and others from all over it: (n, 1 + further, *input_shape)."""
        places = [tuple(self._middle), *self._elsewhere(further)]
        return np.stack([self._at(samples, place) for place in places], axis=1)

    def further(self, samples: int) -> int:
        """How many crops from elsewhere in each of so many samples statistics can use."""
        return min(len(self._grid), max(0, -(-ENOUGH // samples) - 1))

    @property
    def _middle(self) -> Shape:
        """The tile in which the middle crop begins."""
        pairs = zip(self.whole.tile_grid, self.tiles, strict=True)
        return tuple((most - count) // 2 for most, count in pairs)

    @property
    def _grid(self) -> list[Shape]:
        """The tiles in which crops begin that cover a sample, but for the middle."""
        pairs = zip(self.whole.tile_grid, self.tiles, strict=True)
        starts = product(*(sorted({*range(0, most - n, n), most - n}) for most, n in pairs))
        return [start for start in starts if start != self._middle]

    def _elsewhere(self, count: int) -> list[Shape]:
        """So many of them, from all over a sample."""
        chosen = np.linspace(0, len(self._grid) - 1, count).astype(int)
        return [self._grid[at] for at in chosen]

    def _at(self, samples: npt.NDArray[Any], place: Shape) -> npt.NDArray[Any]:
        tile = self.whole.tile
        inner = [slice(at * tile, (at + count) * tile) for at, count in zip(place, self.tiles, strict=True)]
        return samples[(slice(None), slice(None), *inner)]

    def of_layer(self, layer: FirstLayer) -> FirstLayer:
        """The first layer, as it acts on a crop."""
        return replace(layer, input_shape=self.input_shape)

    def of_augmented(self, augmented: AugmentedLayer) -> AugmentedLayer:
        """The augmented layer, as it acts on a morphed crop."""
        return augmented.for_shape(self.input_shape)

    def of_morphing(self, morphing: Morphing) -> Morphing:
        """The provider's morphing of a crop: the same core."""
        return Morphing(self.layout, morphing.core)

    def __str__(self) -> str:
        pixels = shape_text(self.input_shape[1:])
        return (
            f"the middle {pixels} pixels, {shape_text(self.tiles)} of its "
            f"{shape_text(self.whole.tile_grid)} tiles"
        )


def _fits(side: int, grid: Shape, block: int) -> bool:
    return element_count(tuple(min(side, most) for most in grid)) * block <= MOST_ELEMENTS


def _spanned(geometry: LayerGeometry, tile: int) -> Shape:
    """Tiles along each axis that a kernel needs to fit on them without its padding."""
    reaches = zip(geometry.dilation, geometry.kernel, strict=True)
    return tuple(-(-(dilation * (kernel - 1) + 1) // tile) for dilation, kernel in reaches)


def split_crops(crops: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What `Crop.several` made: the middle crops, and all others, image by image."""
    return np.ascontiguousarray(crops[:, 0]), crops[:, 1:].reshape(-1, *crops.shape[2:])
