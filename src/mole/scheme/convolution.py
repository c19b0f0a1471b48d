"""Runs a first layer in NumPy, as fast as matrix products allow.

`np.matmul` releases the interpreter's lock, so several threads can each run a `Convolution` of
their own: they share the weight, and each has its own buffers, made once and sized for the cache.
"""

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, Shape, element_count, unroll

# Columns gathered at a time: about what a core's second-level cache holds.
BUFFER_BYTES = 1_500_000
# Output positions per product: few enough for BLAS to keep the product on the calling thread.
POSITIONS_PER_PRODUCT = 256


class Convolution:
    """The linear part of a first layer (no bias), with its output channels in any order.

    >>> layer = FirstLayer.conv(np.array([[[[10.0, 1.0]]]]), None, input_shape=(1, 1, 3))
    >>> Convolution(layer, dtype=np.float64)(np.array([[1.0, 2.0, 3.0]]))
    array([[[12., 23.]]])
    """

    def __init__(
        self,
        layer: FirstLayer,
        *,
        dtype: npt.DTypeLike,
        channel_order: npt.NDArray[np.intp] | None = None,
    ) -> None:
        weight = layer.ungrouped_weight
        if channel_order is not None:
            weight = weight[channel_order]
        self._layer = layer
        with np.errstate(over="ignore"):
            self._weight = weight.astype(dtype, copy=False).reshape(layer.channels, -1)
        self._positions = element_count(layer.output_grid)
        column_bytes = self._weight.shape[1] * self._positions * self._weight.itemsize
        self.rows_at_once = max(1, BUFFER_BYTES // column_bytes)
        self._make_buffers()

    def twin(self) -> "Convolution":
        """The same convolution with buffers of its own, for another thread."""
        twin = copy.copy(self)
        twin._make_buffers()
        return twin

    def _make_buffers(self) -> None:
        if self._layer.kernel:
            dtype = self._weight.dtype
            self._padded = np.zeros((self.rows_at_once, *_padded_shape(self._layer)), dtype)
            self._windows = _windows(self._padded, self._layer)
            self._columns = np.empty(self._windows.shape, dtype)

    def __call__(self, rows: Array, out: Array | None = None) -> Array:
        """Features of row vectors: (b, elements) to (b, channels, output positions)."""
        if out is None:
            shape = (len(rows), self._layer.channels, self._positions)
            out = np.empty(shape, self._weight.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # callers check what comes out
            if not self._layer.kernel:
                np.matmul(rows, self._weight.T, out=out[:, :, 0])
                return out
            for start in range(0, len(rows), self.rows_at_once):
                part = slice(start, start + self.rows_at_once)
                self._convolve(rows[part], out[part])
        return out

    def _convolve(self, rows: Array, out: Array) -> None:
        """One product of the weight and the gathered windows for each run of output positions."""
        layer, count = self._layer, len(rows)
        read = (
            slice(side + min(0, after)) for side, (_, after) in zip(layer.grid, layer.padding, strict=True)
        )
        images = rows.reshape(count, layer.input_channels, *layer.grid)
        inside = images[(slice(None), slice(None), *read)]
        self._padded[(slice(count), slice(None), *_inner(layer))] = inside
        self._columns[:count] = self._windows[:count]
        columns = self._columns[:count].reshape(count, self._weight.shape[1], self._positions)
        edges = [*range(0, self._positions, POSITIONS_PER_PRODUCT), self._positions]
        for start, stop in pairwise(edges):
            np.matmul(self._weight, columns[:, :, start:stop], out=out[:, :, start:stop])


def features_of(
    layer: FirstLayer, batch: Array, *, channel_order: npt.NDArray[np.intp] | None = None
) -> Array:
    """What the whole layer makes of plain samples: (b, *input_shape) to (b, *output_shape)."""
    linear = Convolution(layer, dtype=batch.dtype, channel_order=channel_order)(unroll(batch))
    bias = layer.bias if layer.bias is None or channel_order is None else layer.bias[channel_order]
    return add_bias(linear.reshape(len(batch), *layer.output_shape), bias)


def add_bias(features: Array, bias: Array | None) -> Array:
    """Features, (b, channels, *grid), with a number added to each channel."""
    if bias is None:
        return features
    added: Array = features + bias.astype(features.dtype).reshape(-1, *(1,) * (features.ndim - 2))
    return added


def window_elements(layer: FirstLayer) -> npt.NDArray[np.intp]:
    """Which elements of a sample lie under the kernel: (output positions, taps); -1 where it is padding.

    >>> kernel, padding = np.ones((1, 1, 1, 2)), ((0, 0), (0, 1))
    >>> window_elements(FirstLayer.conv(kernel, None, input_shape=(1, 1, 3), padding=padding)).tolist()
    [[0, 1], [1, 2], [2, -1]]
    """
    elements = np.arange(element_count(layer.input_shape))
    padded = np.full((1, *_padded_shape(layer)), -1)
    padded[(slice(None), slice(None), *_inner(layer))] = elements.reshape(layer.input_channels, *layer.grid)
    positions = element_count(layer.output_grid)
    return np.ascontiguousarray(_windows(padded, layer).reshape(-1, positions).T)


def _inner(layer: FirstLayer) -> tuple[slice, ...]:
    """Where the sample lies in its padding."""
    return tuple(
        slice(before, before + side) for side, (before, _) in zip(layer.grid, layer.padding, strict=True)
    )


def _padded_shape(layer: FirstLayer) -> Shape:
    sides = (side + before + after for side, (before, after) in zip(layer.grid, layer.padding, strict=True))
    return (layer.input_channels, *sides)


def _windows(padded: npt.NDArray[Any], layer: FirstLayer) -> npt.NDArray[Any]:
    """A view of every input element under every kernel element: (b, channels, *kernel, *output grid)."""
    batch_step, channel_step, *steps = padded.strides
    tap_steps = [step * by for step, by in zip(steps, layer.dilation, strict=True)]
    window_steps = [step * by for step, by in zip(steps, layer.stride, strict=True)]
    return as_strided(
        padded,
        shape=(*padded.shape[:2], *layer.kernel, *layer.output_grid),
        strides=(batch_step, channel_step, *tap_steps, *window_steps),
        writeable=False,
    )
