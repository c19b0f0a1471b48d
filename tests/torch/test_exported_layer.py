"""A first layer as it is exported: in 32 bits, with its normalisation, and every convolution as it is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import mole
from mole.errors import ParameterError
from mole.scheme.layer_matrix import layer_matrix
from mole.scheme.shapes import roll, unroll
from mole.torch import export_first_layer
from processors import needs_16_bits
from small_models import conv


@needs_16_bits
def test_half_precision_models_are_exported_in_32_bits():
    layer = export_first_layer(nn.Sequential(conv()).bfloat16(), (3, 8, 8))
    assert layer.weight.dtype == np.float32


def test_the_normalisation_travels_with_the_layer():
    layer = export_first_layer(nn.Sequential(conv()), (3, 8, 8), mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6])
    assert layer.normalisation == mole.Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    with pytest.raises(ParameterError, match="sequences of numbers"):
        export_first_layer(nn.Sequential(conv()), (3, 8, 8), mean=object(), std=0.5)
    with pytest.raises(ParameterError, match="both mean and std"):
        export_first_layer(nn.Sequential(conv()), (3, 8, 8), mean=[0.1, 0.2, 0.3])


@st.composite
def modules(draw: st.DrawFn) -> tuple[nn.Module, tuple[int, ...]]:
    torch.manual_seed(draw(st.integers(0, 2**32)))  # what is drawn below, and the batch after it
    axes = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 2))
    kernel = draw(st.integers(1, 3))
    same = draw(st.booleans())
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
    module = kind(
        2 * groups,
        3 * groups,
        kernel,
        stride=1 if same else draw(st.integers(1, 2)),
        padding="same" if same else draw(st.sampled_from([0, 1, "valid"])),
        dilation=draw(st.integers(1, 2)),
        groups=groups,
        bias=draw(st.booleans()),
    )
    sides = draw(st.lists(st.integers(5, 7), min_size=axes, max_size=axes))
    return nn.Sequential(module), (2 * groups, *sides)


@given(case=modules())
def test_every_convolution_of_torch_is_exported_as_it_is(case):
    model, shape = case
    layer = export_first_layer(model, shape)
    batch = torch.randn(2, *shape, dtype=torch.float64)
    with torch.no_grad():
        expected = model.double()(batch).numpy()
    features = roll(unroll(batch.numpy()) @ layer_matrix(layer), layer.output_shape)
    if layer.bias is not None:
        features = features + layer.bias.reshape(-1, *(1,) * len(layer.output_grid))
    assert np.allclose(features, expected, atol=1e-6)
