"""The augmented layer of the `tiles` layout as a PyTorch module: a convolution over the grid of tiles.

    space-to-depth by t:  each tile becomes one position with all its values as channels
    convolution:          from tiles to tiles, a few tiles wide
    depth-to-space:       each tile of features becomes positions again

All three run wherever convolutions run, and on images of any size that is a multiple of t.

Most of the kernel is zero: features in the middle of a tile depend on that tile alone, and those at an edge
on one neighbour. So the convolution is made in parts, one for each set of tiles that features depend on.
ResNet's stem with tiles of 8 takes a third of the multiplications that way.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import torch
import torch.fx
from torch import Tensor
from torch.nn import functional

from mole.errors import ShapeError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import Padding
from mole.scheme.tile_geometry import TileGeometry
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
    _parts: list[list[list[int]]]

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
        self._parts = [list(map(list, part)) for part in product(*_runs(tiles))]

    def forward(self, input: Tensor) -> Tensor:  # named as PyTorch's layers name it
        """Features of morphed samples: (b, channels, *grid) or (b, elements) to (b, channels, *grid)."""
        images = images_of_tiles(input, self._sides, self._added, self._tile)
        return _tile_features(images, self.weight, self.bias, self._tile, self._axes, self._parts)


def _runs(tiles: TileGeometry) -> list[list[tuple[int, int, int, int]]]:
    """Features of a tile in runs that depend on the same tiles, along each axis.

    Of each run: its first feature, how many it has, the first tile of the kernel that counts, and how many.

    >>> from mole.scheme.geometry import LayerGeometry
    >>> stem = LayerGeometry(kernel=(7, 7), stride=(2, 2), padding=((3, 3), (3, 3)), dilation=(1, 1))
    >>> _runs(TileGeometry(stem, 8))[0]
    [(0, 2, 0, 2), (2, 1, 1, 1), (3, 1, 1, 2)]
    """
    found = []
    for axis, (size, reach) in enumerate(zip(tiles.features_per_tile, tiles.reach, strict=True)):
        layer, runs = tiles.layer, list[tuple[int, int, int, int]]()
        for at in range(size):
            start = at * layer.stride[axis] - layer.padding[axis][0]
            end = start + layer.dilation[axis] * (layer.kernel[axis] - 1)
            first = start // tiles.tile - reach.first
            count = end // tiles.tile - start // tiles.tile + 1
            if runs and runs[-1][2:] == (first, count):
                runs[-1] = (runs[-1][0], runs[-1][1] + 1, first, count)
            else:
                runs.append((at, 1, first, count))
        found.append(runs)
    return found


# Plain functions, which torch.fx keeps as they are and TorchScript compiles: types are TorchScript's.


@torch.fx.wrap
def images_of_tiles(morphed: Tensor, sides: list[int], added: list[int], tile: int) -> Tensor:
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
def _tile_features(  # noqa: PLR0917  (torch.fx and TorchScript)
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tile: int,
    axes: list[list[int]],
    parts: list[list[list[int]]],
) -> Tensor:
    """Features of images: (b, channels, *grid) to (b, channels, *grid)."""
    pads: list[int] = []
    per_tile: list[int] = []
    output_tiles: list[int] = []
    output_sides: list[int] = []
    positions = 1
    reaches_out = False
    for axis in range(len(axes)):
        size, before, zeros, span, step = axes[axis]
        side = images.shape[2 + axis]
        output = (side + zeros - span) // step + 1
        count = (output + size - 1) // size
        after = count - side // tile - before + weight.shape[2 + axis] - 1
        pads = [before, after] + pads  # noqa: RUF005  (for TorchScript; the last axis comes first)
        reaches_out = reaches_out or zeros > 0 or weight.shape[2 + axis] > 1
        per_tile.append(size)
        output_tiles.append(count)
        output_sides.append(output)
        positions *= size
    tiles = _space_to_depth(images, tile)
    if reaches_out:
        tiles = functional.pad(tiles, pads)  # negative numbers cut off
    channels = weight.shape[0] // positions
    kernel = weight.reshape([channels] + per_tile + list(weight.shape[1:]))  # noqa: RUF005
    if torch.jit.is_tracing():  # type: ignore
        found = [_part_of_features(tiles, kernel, bias, part, output_tiles) for part in parts]
        features = _joined(found, parts)
    else:
        # One part gives the type and device of all: under autocast these are not the images'.
        part = _part_of_features(tiles, kernel, bias, parts[0], output_tiles)
        whole = [images.shape[0], channels]
        for axis in range(len(axes)):
            whole += [output_tiles[axis], per_tile[axis]]
        features = part.new_empty(whole)
        _put(features, part, parts[0])
        for index in range(1, len(parts)):
            _put(features, _part_of_features(tiles, kernel, bias, parts[index], output_tiles), parts[index])
    sides = [images.shape[0], channels]
    for axis in range(len(axes)):
        sides.append(output_tiles[axis] * per_tile[axis])
    features = features.reshape(sides)
    for axis in range(len(axes)):
        features = features.narrow(2 + axis, 0, output_sides[axis])
    return features.contiguous()  # as a convolution's are; a copy only where something was cut off


def _part_of_features(
    tiles: Tensor, kernel: Tensor, bias: Tensor | None, part: list[list[int]], output_tiles: list[int]
) -> Tensor:
    """Some features of each tile, (b, channels, *features, *tiles), from the tiles that they depend on.

    The kernel is (channels, *features of a tile, q, *tiles).
    """
    axes = len(part)
    features = 1
    sides: list[int] = []
    for axis in range(axes):
        first, count, first_tile, reach = part[axis]
        kernel = kernel.narrow(1 + axis, first, count).narrow(2 + axes + axis, first_tile, reach)
        tiles = tiles.narrow(2 + axis, first_tile, output_tiles[axis] + reach - 1)
        features *= count
        sides.append(count)
    channels = kernel.shape[0]
    if bias is not None:
        bias = bias.repeat_interleave(features)
    found = _convolve(tiles, _values_last(kernel.flatten(0, axes)), bias)
    return found.reshape([found.shape[0], channels] + sides + list(found.shape[2:]))  # noqa: RUF005


def _put(features: Tensor, part: Tensor, places: list[list[int]]) -> None:
    """Write a part where it belongs: features are (b, channels, tiles, features of a tile, tiles, ...)."""
    axes = len(places)
    order = [0, 1]
    for axis in range(axes):
        features = features.narrow(3 + 2 * axis, places[axis][0], places[axis][1])
        order += [2 + axes + axis, 2 + axis]
    features.copy_(part.permute(order))


def _joined(found: list[Tensor], parts: list[list[list[int]]]) -> Tensor:
    """All parts as `_put` would write them, without writing: the ONNX exporter that traces loses writes."""
    axes = len(parts[0])
    for axis in range(axes - 1, -1, -1):
        rows: list[list[Tensor]] = []
        first: list[list[list[int]]] = []
        for index in range(len(parts)):
            if parts[index][axis][0] == 0:
                rows.append([])
                first.append(parts[index])
            rows[-1].append(found[index])
        found = [torch.cat(row, 2 + axis) for row in rows]
        parts = first
    order = [0, 1]
    for axis in range(axes):
        order += [2 + axes + axis, 2 + axis]
    return found[0].permute(order)


def _convolve(tiles: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if tiles.dim() == 3:
        return functional.conv1d(tiles, weight, bias)
    if tiles.dim() == 4:
        return functional.conv2d(tiles, weight, bias)
    return functional.conv3d(tiles, weight, bias)


def _values_last(tensor: Tensor) -> Tensor:
    """The same numbers, with those of one tile side by side in memory: convolutions are faster so."""
    order, back = [0], [0, tensor.dim() - 1]
    for axis in range(2, tensor.dim()):
        order.append(axis)
        back.append(axis - 1)
    return tensor.permute(order + [1]).contiguous().permute(back)  # noqa: RUF005  (for TorchScript)


def _space_to_depth(images: Tensor, tile: int) -> Tensor:
    """Images, (b, channels, *grid), to tiles, (b, channels x t^axes, *tiles), their values side by side."""
    axes = images.dim() - 2
    cut = [images.shape[0], images.shape[1]]
    order, values, back = [0], [1], [0, 1 + axes]
    whole, block = [images.shape[0]], images.shape[1]
    for axis in range(axes):
        cut += [images.shape[2 + axis] // tile, tile]
        order.append(2 + 2 * axis)
        values.append(3 + 2 * axis)
        back.append(1 + axis)
        whole.append(images.shape[2 + axis] // tile)
        block = block * tile  # not in place: sides are tensors while something traces
    whole.append(block)
    return images.reshape(cut).permute(order + values).reshape(whole).permute(back)


def _misfit(morphed: Tensor, sides: list[int], tile: int) -> ShapeError:
    return ShapeError(
        f"a batch of shape {tuple(morphed.shape)} does not fit this augmented layer: expected (batch, "
        f"{', '.join(map(str, sides))}), or other sides that are multiples of {tile}"
    )
