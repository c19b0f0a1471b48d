"""The matrix of a layer, against the paper's equation and against PyTorch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mole
from mole.scheme.convolution import Convolution
from mole.scheme.layer_matrix import layer_matrix, sparse_layer_matrix
from mole.scheme.shapes import roll, unroll
from strategies import layer_cases


@given(alpha=st.integers(1, 3), beta=st.integers(1, 3), m=st.integers(2, 5), p=st.integers(1, 2))
def test_matrix_follows_the_papers_equation_1(alpha, beta, m, p):
    """Square input, stride 1, no padding: element by element as the paper writes it."""
    n = m - p + 1
    kernels = np.arange(1.0, 1 + beta * alpha * p * p).reshape(beta, alpha, p, p)
    expected = np.zeros((alpha * m * m, beta * n * n))
    for i in range(alpha):
        for j in range(beta):
            for a in range(p):
                for b in range(p):
                    for c in range(n):
                        for d in range(n):
                            x = i * m**2 + a * m + c * m + b + d
                            y = j * n**2 + c * n + d
                            expected[x, y] = kernels[j, i, a, b]
    layer = mole.FirstLayer.conv(kernels, None, input_shape=(alpha, m, m))
    assert np.array_equal(layer_matrix(layer), expected)


@given(case=layer_cases())
def test_matrix_gives_torchs_features(case):
    layer = case.layer
    features = roll(unroll(case.batch) @ layer_matrix(layer), layer.output_shape)
    if layer.bias is not None:
        features = features + layer.bias.reshape(-1, *(1,) * len(layer.output_grid))
    assert np.allclose(features, case.torch_features(), atol=1e-10)


@given(case=layer_cases())
def test_sparse_matrix_is_the_dense_one(case):
    sparse = sparse_layer_matrix(case.layer)
    assert np.array_equal(sparse.toarray(), layer_matrix(case.layer))


@given(case=layer_cases())
def test_convolution_is_the_product_with_the_matrix(case):
    rows = unroll(case.batch)
    features = Convolution(case.layer, dtype=np.float64)(rows)
    expected = rows @ layer_matrix(case.layer)
    assert np.allclose(features.reshape(expected.shape), expected, atol=1e-10)


def test_convolution_of_more_rows_and_positions_than_one_buffer_holds(rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(8, 3, 5, 5)), None, input_shape=(3, 40, 41), padding=2)
    convolution = Convolution(layer, dtype=np.float64)
    rows = rng.normal(size=(2 * convolution.rows_at_once + 3, 3 * 40 * 41))
    expected = rows @ sparse_layer_matrix(layer)
    assert np.allclose(convolution(rows).reshape(expected.shape), expected, atol=1e-10)
