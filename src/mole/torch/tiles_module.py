"""The augmented layer of the `tiles` layout as a PyTorch module: a convolution over the grid of tiles.

    space-to-depth by t:  each tile becomes one position with all its values as channels
    convolution:          from tiles to tiles, a few tiles wide
    depth-to-space:       each tile of features becomes positions again

All three run wherever convolutions run, and on images of any size that is a multiple of t.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.fx
from torch import Tensor
from torch.nn import functional

from mole.errors import ShapeError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import Padding
from mole.scheme.tile_kernel import TileKernel
from mole.torch.module import AugmentedModule


class TilesModule(AugmentedModule):
    """As any augmented layer; it also takes images of other sizes, as long as tiles fill them."""

    # TorchScript looks for these here, and not in the class above.
    weight: Tensor
    bias: Tensor | None
    _sides: list[int]
    _added: list[int]
    _axes: list[list[int]]

    def __init__(
        self,
        augmented: AugmentedLayer,
        *,
        added_padding: Padding = (),
        hyper_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(augmented, added_padding=added_padding, hyper_parameters=hyper_parameters)
        part = augmented.linear
        if not isinstance(part, TileKernel):
            raise ShapeError(f"a layer for blocks of {augmented.layout} is not one for tiles")
        self._tile = part.layout.tile
        self._added = [zeros for pair in added_padding for zeros in pair]
        geometry, tiles = part.geometry, part.tiles
        shapes = zip(augmented.input_shape[1:], augmented.network_shape[1:], strict=True)
        # Of each axis: features per tile, tiles before the first, zeros around that the last tiles do not
        # hold already, kernel's reach, stride.
        self._axes = [
            [per_tile, -reach.first, sum(zeros) - (whole - side), dilation * (kernel - 1) + 1, stride]
            for per_tile, reach, zeros, (whole, side), dilation, kernel, stride in zip(
                tiles.features_per_tile, tiles.reach, geometry.padding, shapes, geometry.dilation,
                geometry.kernel, geometry.stride, strict=True,
            )
        ]  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:  # named as PyTorch's layers name it
        """Features of morphed samples: (b, channels, *grid) or (b, elements) to (b, channels, *grid)."""
        images = _images(input, self._sides, self._added, self._tile)
        return _tile_features(images, self.weight, self.bias, self._tile, self._axes)


# Plain functions, which torch.fx keeps as they are and TorchScript compiles: types are TorchScript's.


@torch.fx.wrap
def _images(morphed: Tensor, sides: list[int], added: list[int], tile: int) -> Tensor:
    """Images made of tiles, (b, channels, *grid), without the zeros that the network put around them."""
    elements = 1
    for side in sides:
        elements *= side
    if morphed.dim() == 2 and morphed.shape[1] == elements:
        return morphed.reshape([morphed.shape[0]] + sides)  # noqa: RUF005  (for TorchScript)
    if len(added) > 0 and list(morphed.shape[1:]) != sides:
        axes = len(added) // 2
        for axis in range(axes):
            at, before, after = morphed.dim() - axes + axis, added[2 * axis], added[2 * axis + 1]
            morphed = morphed.narrow(at, before, morphed.shape[at] - before - after)
    if torch.jit.is_tracing():  # type: ignore
        return morphed  # sides are no numbers then: they cannot be compared
    fits = morphed.dim() == len(sides) + 1 and morphed.shape[1] == sides[0]
    for side in morphed.shape[2:]:
        fits = fits and side % tile == 0
    if not fits:
        if torch.jit.is_scripting():  # type: ignore[attr-defined]
            raise ValueError("a batch does not fit this augmented layer")
        else:
            raise _misfit(morphed, sides, tile)
    return morphed


@torch.fx.wrap
def _tile_features(
    images: Tensor, weight: Tensor, bias: Tensor | None, tile: int, axes: list[list[int]]
) -> Tensor:
    """Features of images: (b, channels, *grid) to (b, channels, *grid)."""
    pads: list[int] = []
    per_tile: list[int] = []
    output_sides: list[int] = []
    for axis in range(len(axes)):
        size, before, zeros, span, step = axes[axis]
        side = images.shape[2 + axis]
        output = (side + zeros - span) // step + 1
        tiles = (output + size - 1) // size
        after = tiles - side // tile - before + weight.shape[2 + axis] - 1
        pads = [before, after] + pads  # noqa: RUF005  (for TorchScript; the last axis comes first)
        per_tile.append(size)
        output_sides.append(output)
    if bias is not None:
        positions = 1
        for size in per_tile:
            positions *= size
        bias = bias.repeat_interleave(positions)
    found = _convolve(_space_to_depth(images, tile), weight, bias, pads)
    features = _depth_to_space(found, per_tile)
    for axis in range(len(axes)):
        features = features.narrow(2 + axis, 0, output_sides[axis])
    return features


def _convolve(tiles: Tensor, weight: Tensor, bias: Tensor | None, pads: list[int]) -> Tensor:
    """A convolution with zeros (before, after) each axis, the last axis first; negative ones cut off."""
    padding: list[int] = []
    same = True
    for axis in range(len(pads) // 2):
        same = same and pads[2 * axis] == pads[2 * axis + 1]
        padding = [pads[2 * axis]] + padding  # noqa: RUF005  (for TorchScript)
    if not same:
        tiles = functional.pad(tiles, pads)
        padding = [0 for _ in padding]
    if len(padding) == 1:
        return functional.conv1d(tiles, weight, bias, padding=padding)
    if len(padding) == 2:
        return functional.conv2d(tiles, weight, bias, padding=padding)
    return functional.conv3d(tiles, weight, bias, padding=padding)


def _space_to_depth(images: Tensor, tile: int) -> Tensor:
    """Images, (b, channels, *grid), to tiles, (b, channels x t^axes, *tiles)."""
    axes = images.dim() - 2
    cut = [images.shape[0], images.shape[1]]
    order, tiles = [0, 1], [2 + 2 * axis for axis in range(axes)]
    whole = [images.shape[0], images.shape[1]]
    for axis in range(axes):
        whole[1] *= tile
        cut += [images.shape[2 + axis] // tile, tile]
        order.append(3 + 2 * axis)
        whole.append(images.shape[2 + axis] // tile)
    return images.reshape(cut).permute(order + tiles).reshape(whole)


def _depth_to_space(tiles: Tensor, per_tile: list[int]) -> Tensor:
    """Tiles of features, (b, channels x positions, *tiles), to features, (b, channels, *grid)."""
    axes = len(per_tile)
    positions = 1
    for size in per_tile:
        positions *= size
    channels = tiles.shape[1] // positions
    order, whole = [0, 1], [tiles.shape[0], channels]
    for axis in range(axes):
        order += [2 + axes + axis, 2 + axis]
        whole.append(tiles.shape[2 + axis] * per_tile[axis])
    cut = [tiles.shape[0], channels] + per_tile + list(tiles.shape[2:])  # noqa: RUF005
    return tiles.reshape(cut).permute(order).reshape(whole)


def _misfit(morphed: Tensor, sides: list[int], tile: int) -> ShapeError:
    return ShapeError(
        f"a batch of shape {tuple(morphed.shape)} does not fit this augmented layer: expected (batch, "
        f"{', '.join(map(str, sides))}), or other sides that are multiples of {tile}"
    )
