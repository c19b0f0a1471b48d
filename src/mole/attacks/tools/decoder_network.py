"""The network of the learned inversion: features to images of any number of axes."""

import math

import torch
from torch import Tensor, nn

from mole.scheme.shapes import Shape, element_count

WIDTH, FINE_WIDTH = 64, 16
CONVOLUTIONS: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


class DecoderNetwork(nn.Module):
    """Works on features at their own size, unfolds them to the image's, and corrects a coarse image there.

    >>> network = DecoderNetwork((1, 28, 28), (4, 7, 7))
    >>> network(torch.zeros(2, 4, 7, 7), torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 1, 28, 28])
    """

    def __init__(self, input_shape: Shape, output_shape: Shape) -> None:
        super().__init__()
        shape = input_shape if len(input_shape) > 1 else (1, *input_shape)
        self._colours, self._grid = shape[0], shape[1:]
        axes = len(self._grid)
        # Features of a Linear layer have no grid: they are a single position of many channels.
        self._positions = output_shape[1:] or (1,) * axes
        self._factors = tuple(
            math.ceil(side / positions) for side, positions in zip(self._grid, self._positions, strict=True)
        )
        conv = CONVOLUTIONS[axes - 1]
        size = 3 if max(self._positions) > 1 else 1
        self._body = nn.Sequential(
            conv(output_shape[0], WIDTH, size, padding=size // 2), nn.ReLU(),
            conv(WIDTH, WIDTH, size, padding=size // 2), nn.ReLU(),
        )  # fmt: skip
        unfolded = FINE_WIDTH if size > 1 else 8
        self._unfold = conv(WIDTH, unfolded * element_count(self._factors), 1)
        self._fine = nn.Sequential(
            conv(unfolded + self._colours, FINE_WIDTH, 3, padding=1), nn.ReLU(),
            conv(FINE_WIDTH, self._colours, 3, padding=1),
        )  # fmt: skip

    def forward(self, features: Tensor, coarse: Tensor) -> Tensor:
        """Features, (b, channels, *positions), and coarse images to images, (b, colours, *grid)."""
        features = features.reshape(*features.shape[:2], *self._positions)
        coarse = coarse.reshape(len(coarse), self._colours, *self._grid)
        large = self._spread(self._unfold(self._body(features)))
        out: Tensor = coarse + self._fine(torch.cat([large, coarse], dim=1))
        return out

    def _spread(self, values: Tensor) -> Tensor:
        """Channels become positions: each position of the features covers a block of the image."""
        axes = len(self._factors)
        blocks = values.reshape(len(values), -1, *self._factors, *values.shape[2:])
        order = [
            axis
            for pair in zip(range(2 + axes, 2 + 2 * axes), range(2, 2 + axes), strict=True)
            for axis in pair
        ]
        sides = [side * factor for side, factor in zip(values.shape[2:], self._factors, strict=True)]
        large = blocks.permute(0, 1, *order).reshape(len(values), -1, *sides)
        if tuple(sides) == tuple(self._grid):
            return large
        return nn.functional.interpolate(large, size=self._grid)
