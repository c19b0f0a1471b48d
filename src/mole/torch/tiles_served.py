"""The augmented layer of the `tiles` layout for servers: one convolution, the other way round.

    space-to-depth by t:     each tile becomes one position with all its values as channels
    transposed convolution:  each tile adds what it gives to the features around it

It gives what `TilesModule` gives, with no more multiplications, and every feature where it belongs. That
module makes its convolution in parts and writes each into its place, which suits PyTorch; as ONNX, each
such write becomes a dozen operators, which took longer than all the rest of a small network. Here the
kernel is rearranged once, when a network is exported. Where every tile gives one position by itself, as in
a vision transformer, it is the plain convolution.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from torch import Tensor, nn
from torch.nn import functional

from mole.torch.module import augmented_part
from mole.torch.running import uncompiled
from mole.torch.tiles_module import TilesModule, images_of_tiles

CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)
TRANSPOSED = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)


@contextmanager
def served_tiles(model: nn.Module) -> Iterator[None]:
    """Let a model have its augmented layer in this form for a while; without tiles it stays as it is."""
    model = uncompiled(model)
    part = augmented_part(model)
    if part is None or not isinstance(part.module, TilesModule):
        yield
        return
    found = model.named_modules(remove_duplicate=False)
    names = [name for name, one in found if name and one is part.module]  # a layer alone stays as it is
    served = ServedTiles(part.module)
    try:
        for name in names:
            model.set_submodule(name, served)
        yield
    finally:
        for name in names:
            model.set_submodule(name, part.module)


class ServedTiles(TilesModule):
    """As `TilesModule`, for images of one size.

    Attributes:
        spread: what each value of a tile adds to the features around it, (q, channels, *features).
        patches: the same as the kernel of a plain convolution, where these are the tile's own and one.
    """

    spread: Tensor
    patches: Tensor | None

    def __init__(self, tiles: TilesModule) -> None:
        super().__init__(
            tiles.layer(), added_padding=tiles.added_padding, hyper_parameters=tiles.hyper_parameters
        )
        self.train(tiles.training)
        self._per_tile = [size for size, *_ in self._axes]
        self._grid = [side // self._tile for side in self.input_shape[1:]]
        self._cuts: list[tuple[int, int]] = []  # of each axis: features before the first and after the last
        spread = self._all_of_the_kernel()
        for axis, (per_tile, before, *_) in enumerate(self._axes):
            low, high = self._reached(axis)
            spread = spread.narrow(2 + axis, low, high - low)
            first = (before - self.weight.shape[2 + axis] + 1) * per_tile + low
            end = first + (self._grid[axis] - 1) * per_tile + high - low
            self._cuts.append((-first, end - self.output_shape[1 + axis]))
        self.register_buffer("spread", spread.contiguous())
        patch = (self.output_shape[0], self.input_shape[0], *[self._tile] * len(self._axes))
        is_patch = {*self._per_tile, *spread.shape[2:]} == {1} and not any(map(any, self._cuts))
        self.register_buffer("patches", spread.flatten(1).T.reshape(patch) if is_patch else None)
        self.to(tiles.weight)

    def _all_of_the_kernel(self) -> Tensor:
        """The kernel as a tile sees it: (q, channels, *features of all tiles that the kernel knows)."""
        axes, (_, q, *tiles), channels = len(self._axes), self.weight.shape, self.output_shape[0]
        kernel = self.weight.reshape(channels, *self._per_tile, q, *tiles)
        # To features the first tile of a kernel is before them; to that tile the features are the last.
        kernel = kernel.flip([2 + axes + axis for axis in range(axes)])
        sides = [place for axis in range(axes) for place in (2 + axes + axis, 1 + axis)]
        whole = [count * per_tile for count, per_tile in zip(tiles, self._per_tile, strict=True)]
        return kernel.permute(1 + axes, 0, *sides).reshape(q, channels, *whole)

    def _reached(self, axis: int) -> tuple[int, int]:
        """From where to where a tile adds anything to these; the rest of the kernel is zero."""
        per_tile, tiles = self._per_tile[axis], self.weight.shape[2 + axis]
        runs = [part[axis] for part in self._parts]
        low = min((tiles - tile - count) * per_tile + first for first, _, tile, count in runs)
        high = max((tiles - tile - 1) * per_tile + first + size for first, size, tile, _ in runs)
        return low, high

    def forward(self, input: Tensor) -> Tensor:  # named as PyTorch's layers name it
        """Features of morphed samples: (b, channels, *grid) or (b, elements) to (b, channels, *grid)."""
        images = images_of_tiles(input, self._sides, self._added, self._tile)
        axes = len(self._axes)
        if self.patches is not None:
            return CONVOLUTIONS[axes - 1](images, self.patches, self.bias, self._tile)
        both = [max(0, min(cuts)) for cuts in self._cuts]
        pads = [amount - cut for cuts, amount in zip(self._cuts, both, strict=True) for cut in cuts]
        adds = any(pad > 0 for pad in pads)  # features that no tile reaches: these are the bias alone
        bias = None if adds else self.bias
        features = TRANSPOSED[axes - 1](self._tiles(images), self.spread, bias, self._per_tile, both)
        if any(pads):
            last_axis_first = [pads[2 * axis + end] for axis in reversed(range(axes)) for end in (0, 1)]
            features = functional.pad(features, last_axis_first)  # negative numbers cut off
        if adds and self.bias is not None:
            features = features + self.bias.reshape(-1, *[1] * axes)
        return features

    def _tiles(self, images: Tensor) -> Tensor:
        """Each tile as one position: (b, q, *tiles).

        One axis after another: onnxruntime turns two axes five times as fast as four.
        """
        values, tiles, rest = self.input_shape[0], 1, prod(self.input_shape[1:])
        for count in self._grid:
            tiles, rest = tiles * count, rest // (count * self._tile)
            images = images.reshape(-1, values, tiles, self._tile, rest).transpose(2, 3)
            values *= self._tile
        return images.reshape(-1, values, *self._grid)
