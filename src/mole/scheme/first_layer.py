"""The developer's first layer: weights, hyper-parameters, input shape and expected normalisation.

One description covers Conv1d, Conv2d, Conv3d and Linear. A Linear layer is the convolution without
spatial axes: every element of the sample is a channel of its own.
"""

import hashlib
import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import ShapeError, UnsupportedLayerError
from mole.limits import MAX_ELEMENTS, MAX_FEATURES, MAX_GATHERED, MAX_STEP
from mole.scheme.normalisation import Normalisation, plain_data
from mole.scheme.shapes import Array, Shape, check_shape, element_count

MAX_SPATIAL_AXES = 3
Padding = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """A linear first layer on samples of one shape.

    >>> weight = np.zeros((64, 3, 3, 3), dtype=np.float32)
    >>> layer = FirstLayer.conv(weight, None, input_shape=(3, 32, 32), padding=1)
    >>> layer.kind, layer.output_shape
    ('conv2d', (64, 32, 32))
    >>> FirstLayer.linear(np.zeros((10, 784)), None, input_shape=(1, 28, 28)).output_shape
    (10,)

    Attributes:
        weight: (channels, input channels / groups, *kernel), or (channels, elements) for Linear.
        bias: (channels,), or None.
        input_shape: a sample's shape, (input channels, *grid), or the grid alone if there is one channel,
            as for sound; any shape for Linear.
        stride, dilation: one number per axis of the grid.
        padding: zeros (before, after) each axis of the grid; fewer than none after an axis are positions at
            its end that are not read.
        groups: as in PyTorch.
        normalisation: what the network expects of its input, if the developer said so.
    """

    weight: Array
    bias: Array | None
    input_shape: Shape
    stride: Shape
    padding: Padding
    dilation: Shape
    groups: int = 1
    normalisation: Normalisation | None = None

    @classmethod
    def conv(
        cls,
        weight: Array,
        bias: Array | None,
        *,
        input_shape: Shape,
        stride: int | Shape = 1,
        padding: int | Shape | Padding = 0,
        dilation: int | Shape = 1,
        groups: int = 1,
        normalisation: Normalisation | None = None,
    ) -> "FirstLayer":
        """A convolution; a single number applies to every axis, as in PyTorch."""
        axes = np.ndim(weight) - 2
        try:
            stride, dilation = _per_axis(stride, axes), _per_axis(dilation, axes)
            padding = _padding_pairs(padding, axes)
        except TypeError:
            raise _unusable(["stride, padding and dilation must be whole numbers"]) from None
        return cls(
            weight=weight,
            bias=bias,
            input_shape=input_shape,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            normalisation=normalisation,
        )

    @classmethod
    def linear(
        cls,
        weight: Array,
        bias: Array | None,
        *,
        input_shape: Shape,
        normalisation: Normalisation | None = None,
    ) -> "FirstLayer":
        """A Linear layer on the flattened sample."""
        return cls(weight, bias, input_shape, (), (), (), normalisation=normalisation)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_shape", check_shape(self.input_shape))
        for name in ("weight", "bias"):
            array = getattr(self, name)
            object.__setattr__(self, name, None if array is None else np.asarray(array))
        try:
            for name in ("stride", "dilation"):
                object.__setattr__(self, name, tuple(map(_whole, getattr(self, name))))
            pairs = tuple((_whole(before), _whole(after)) for before, after in self.padding)
            object.__setattr__(self, "padding", pairs)
            object.__setattr__(self, "groups", _whole(self.groups))
        except (TypeError, ValueError):
            raise _unusable(["stride, padding, dilation and groups must be whole numbers"]) from None
        problems = _problems(self)
        if problems:
            raise _unusable(problems)

    @property
    def kind(self) -> str:
        """'linear', 'conv1d', 'conv2d' or 'conv3d'."""
        return f"conv{len(self.kernel)}d" if self.kernel else "linear"

    @property
    def channels(self) -> int:
        """Number of output channels: the paper's beta."""
        return int(self.weight.shape[0])

    @property
    def kernel(self) -> Shape:
        """Sides of the kernel: (p, p) in the paper, () for Linear."""
        return self.weight.shape[2:]

    @property
    def grid(self) -> Shape:
        """Spatial part of the input shape: (m, m) in the paper, () for Linear."""
        return self.input_shape[-len(self.kernel) :] if self.kernel else ()

    @property
    def input_channels(self) -> int:
        """Channels that the kernel mixes: the paper's alpha; every element for Linear."""
        return element_count(self.input_shape) // element_count(self.grid)

    @property
    def output_grid(self) -> Shape:
        """Spatial part of the output shape: (n, n) in the paper, () for Linear."""
        return tuple(
            (side + before + after - dilation * (kernel - 1) - 1) // stride + 1
            for side, (before, after), dilation, kernel, stride in zip(
                self.grid, self.padding, self.dilation, self.kernel, self.stride, strict=True
            )
        )

    @property
    def output_shape(self) -> Shape:
        """Shape of one sample's features: (beta, n, n) in the paper."""
        return (self.channels, *self.output_grid)

    def plain(self, images: npt.NDArray[Any]) -> Array:
        """Plain data from images, (b, *input_shape), as a delivery of the same images holds it: float32.

        Unsigned integers are brought to a scale of 0 to 1, floats are taken to be on it already, and both
        are normalised if the developer said how.
        """
        if isinstance(images, np.ndarray) and images.shape[1:] != self.input_shape:
            wanted = ", ".join(map(str, self.input_shape))
            raise ShapeError(f"images of shape {images.shape} do not fit: expected (batch, {wanted})")
        return plain_data(images, self.normalisation)

    @cached_property
    def fingerprint(self) -> str:
        """A name for this layer: 32 hexadecimal digits of a digest of its numbers."""
        digest = hashlib.sha256(repr((self.input_shape, self.stride, self.padding, self.dilation)).encode())
        digest.update(repr((self.groups, self.weight.shape, self.normalisation)).encode())
        for array in (self.weight, self.bias):
            digest.update(b"-" if array is None else array.astype("<f8").tobytes())
        return digest.hexdigest()[:32]

    @property
    def ungrouped_weight(self) -> Array:
        """The weight with groups written out as zeros: (channels, input channels, *kernel)."""
        if self.groups == 1:
            return self.weight
        outputs, inputs = self.channels // self.groups, self.weight.shape[1]
        full = np.zeros((self.channels, self.input_channels, *self.kernel), self.weight.dtype)
        for group in range(self.groups):
            rows = slice(group * outputs, (group + 1) * outputs)
            full[rows, group * inputs : (group + 1) * inputs] = self.weight[rows]
        return full


def _per_axis(value: int | Shape, axes: int) -> Shape:
    return (value,) * axes if isinstance(value, int | np.integer) else tuple(value)


def _padding_pairs(value: int | Shape | Padding, axes: int) -> Padding:
    sides = [value] * axes if isinstance(value, int | np.integer) else value
    return tuple((side, side) if isinstance(side, int | np.integer) else side for side in sides)


def _whole(value: object) -> int:
    """A whole number as a plain int; anything else is a TypeError."""
    return operator.index(value)  # type: ignore[arg-type]


def _unusable(problems: list[str]) -> UnsupportedLayerError:
    return UnsupportedLayerError("this first layer cannot be used", problems)


def _problems(layer: FirstLayer) -> list[str]:
    """Everything that is wrong with a layer, in words; stops early where the rest would not make sense."""
    weight, axes = layer.weight, layer.weight.ndim - 2
    if not 0 <= axes <= MAX_SPATIAL_AXES or weight.size == 0:
        return [f"a weight of shape {weight.shape} is not that of a Linear, Conv1d, Conv2d or Conv3d layer"]
    problems = _number_problems("weight", weight)
    if layer.bias is not None:
        if layer.bias.shape != (layer.channels,):
            problems.append(f"its bias has shape {layer.bias.shape}, not ({layer.channels},)")
        problems += _number_problems("bias", layer.bias)
    normalisation, channels = layer.normalisation, layer.input_shape[0]
    if normalisation is not None and axes == len(layer.input_shape):
        problems.append("its samples have no axis of channels to normalise: leave out mean and std")
    elif normalisation is not None and len(normalisation.mean) != channels:
        problems.append(
            f"its normalisation has {len(normalisation.mean)} channels and its input {channels}"
        )
    if axes == 0:
        return problems + _linear_problems(layer)
    return problems + _convolution_problems(layer, axes)


def _number_problems(what: str, array: Array) -> list[str]:
    if not np.issubdtype(array.dtype, np.floating):
        return [f"its {what} is {array.dtype}, not a float type"]
    return [] if np.isfinite(array).all() else [f"its {what} has a NaN or an infinity"]


def _linear_problems(layer: FirstLayer) -> list[str]:
    problems = []
    if layer.weight.shape[1] != element_count(layer.input_shape):
        problems.append(
            f"it takes {layer.weight.shape[1]} elements and a sample of shape {layer.input_shape} "
            f"has {element_count(layer.input_shape)}"
        )
    if layer.groups != 1:
        problems.append("a Linear layer has no groups")
    if layer.stride or layer.padding or layer.dilation:
        problems.append("a Linear layer has no stride, padding or dilation")
    return problems


def _convolution_problems(layer: FirstLayer, axes: int) -> list[str]:
    problems = []
    one_channel = layer.weight.shape[1] * layer.groups == 1
    if len(layer.input_shape) != axes + 1 and not (one_channel and len(layer.input_shape) == axes):
        return [f"its input shape {layer.input_shape} should have {axes + 1} numbers"]
    lengths = {len(layer.stride), len(layer.padding), len(layer.dilation)}
    if lengths != {axes}:
        problems.append(f"stride, padding and dilation should have {axes} numbers each")
    if layer.groups < 1 or layer.channels % layer.groups:
        problems.append(f"{layer.groups} groups do not divide {layer.channels} output channels")
    if layer.weight.shape[1] * layer.groups != layer.input_channels:
        problems.append(
            f"it takes {layer.weight.shape[1] * layer.groups} input channels "
            f"and a sample has {layer.input_channels}"
        )
    steps = (*layer.stride, *layer.dilation)
    if min(steps, default=1) < 1 or max(steps, default=1) > MAX_STEP:
        problems.append(f"stride and dilation must be at least 1; more than {MAX_STEP} is too large")
    if any(
        before < 0 or after <= -side
        for side, (before, after) in zip(layer.grid, layer.padding, strict=False)
    ):
        problems.append("padding must not be negative")
    return problems or _size_problems(layer)


def _size_problems(layer: FirstLayer) -> list[str]:
    """What a convolution would have to make that is too large, found before any of it is made."""
    if min(layer.output_grid) < 1:
        return [f"its kernel {layer.kernel} is larger than its padded input {layer.grid}"]
    padded = [side + sum(pair) for side, pair in zip(layer.grid, layer.padding, strict=True)]
    if math.prod(padded) * layer.input_channels > MAX_ELEMENTS:
        return [f"its padding makes an input of {padded}, which is too large"]
    positions, taps = element_count(layer.output_grid), element_count(layer.kernel) * layer.input_channels
    if positions * layer.channels > MAX_FEATURES:
        return [f"its features are {layer.output_shape}, more than {MAX_FEATURES} numbers"]
    if max(positions, layer.channels) * taps > MAX_GATHERED:
        return [
            f"its kernel {layer.kernel} on {layer.grid} makes more than {MAX_GATHERED} products a channel"
        ]
    return []
