"""Random first layers, keys and batches for property tests."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import settings
from hypothesis import strategies as st

import mole
from mole.scheme.shapes import valid_kappas

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
MAX_SIDE = {1: 24, 2: 8, 3: 4}


def fewer_examples(share: float) -> settings:
    """For a test whose examples take long: a share of what others get, in every profile."""
    return settings(max_examples=round(share * settings.default.max_examples))


@dataclass
class Case:
    """A first layer with a batch for it, a scale factor that fits, and torch's own answer."""

    layer: mole.FirstLayer
    batch: np.ndarray
    kappa: int

    def torch_features(self) -> np.ndarray:
        layer = self.layer
        weight = torch.from_numpy(layer.weight)
        bias = None if layer.bias is None else torch.from_numpy(layer.bias)
        batch = torch.from_numpy(self.batch)
        if layer.kind == "linear":
            return F.linear(batch.flatten(1), weight, bias).numpy()
        sides = [side for pair in reversed(layer.padding) for side in pair]
        convolve = CONVOLUTIONS[len(layer.kernel)]
        return convolve(
            F.pad(batch, sides),
            weight,
            bias,
            stride=layer.stride,
            dilation=layer.dilation,
            groups=layer.groups,
        ).numpy()


@st.composite
def convolution_cases(draw: st.DrawFn) -> Case:
    axes = draw(st.sampled_from([1, 2, 3]))
    groups = draw(st.integers(1, 3))
    inputs, outputs = (groups * draw(st.integers(1, 2)) for _ in range(2))
    per_axis = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(axes))  # noqa: E731
    kernel, stride, dilation = per_axis(1, 3), per_axis(1, 3), per_axis(1, 2)
    padding = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(axes))
    grid = tuple(
        draw(st.integers(max(1, e * (k - 1) + 1 - sum(p)), MAX_SIDE[axes] + 2))
        for k, e, p in zip(kernel, dilation, padding, strict=True)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    layer = mole.FirstLayer.conv(
        rng.normal(size=(outputs, inputs // groups, *kernel)),
        rng.normal(size=outputs) if draw(st.booleans()) else None,
        input_shape=(inputs, *grid),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return _case(draw, layer, rng)


@st.composite
def linear_cases(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    outputs = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    bias = rng.normal(size=outputs) if draw(st.booleans()) else None
    weight = rng.normal(size=(outputs, int(np.prod(shape))))
    return _case(draw, mole.FirstLayer.linear(weight, bias, input_shape=shape), rng)


def _case(draw: st.DrawFn, layer: mole.FirstLayer, rng: np.random.Generator) -> Case:
    batch = rng.normal(size=(draw(st.integers(1, 3)), *layer.input_shape))
    kappa = draw(st.sampled_from(valid_kappas(layer.input_shape)))
    return Case(layer, batch, kappa)


def layer_cases() -> st.SearchStrategy[Case]:
    """Mostly convolutions, of one to three axes; some Linear layers."""
    return st.one_of(convolution_cases(), convolution_cases(), linear_cases())


@st.composite
def tile_cases(draw: st.DrawFn) -> tuple[Case, int]:
    """A convolution with a batch for it, and a side of tiles that its stride divides."""
    axes = draw(st.sampled_from([1, 2, 2, 3]))
    tile = draw(st.sampled_from({1: [4, 6, 12], 2: [2, 3, 4, 6], 3: [2, 3]}[axes]))
    groups = draw(st.integers(1, 2))
    inputs, outputs = (groups * draw(st.integers(1, 2)) for _ in range(2))
    grid = tuple(tile * draw(st.integers(1, 3)) for _ in range(axes))
    kernel = tuple(draw(st.integers(1, min(7, side))) for side in grid)
    dilation = tuple(
        draw(st.integers(1, max(1, (side - 1) // max(1, k - 1)) if k > 1 else 2))
        for k, side in zip(kernel, grid, strict=True)
    )
    divisors = [stride for stride in range(1, tile + 1) if tile % stride == 0]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    layer = mole.FirstLayer.conv(
        rng.normal(size=(outputs, inputs // groups, *kernel)),
        rng.normal(size=outputs) if draw(st.booleans()) else None,
        input_shape=(inputs, *grid),
        stride=tuple(draw(st.sampled_from(divisors)) for _ in range(axes)),
        padding=tuple((draw(st.integers(0, 7)), draw(st.integers(0, 7))) for _ in range(axes)),
        dilation=dilation,
        groups=groups,
    )
    batch = rng.normal(size=(draw(st.integers(1, 3)), *layer.input_shape))
    return Case(layer, batch, kappa=1), tile
