"""Undoing a first layer, and solving for the inverse core, against dense oracles."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import mole
from attackers import Delivery, seed_of
from mole.attacks.tools.deconvolution import CoreEquations, Deconvolution
from mole.attacks.tools.views import NotApplicableError
from mole.scheme.convolution import features_of
from strategies import convolution_cases, layer_cases


def sees_something(layer: mole.FirstLayer) -> bool:
    return bool(np.abs(mole.layer_matrix(layer)).max() > 0)


@given(case=layer_cases())
def test_deconvolution_is_least_squares(case):
    assume(sees_something(case.layer))
    matrix = mole.layer_matrix(case.layer)
    singular = np.linalg.svd(matrix, compute_uv=False) / np.linalg.norm(matrix)
    assume(not ((singular > 1e-13) & (singular < 1e-2)).any())  # no doubt about its rank
    undo = Deconvolution.of(case.layer)
    assert undo.rank == (singular > 1e-9).sum()
    bias = 0 if case.layer.bias is None else case.layer.bias
    features = features_of(case.layer, case.batch)
    linear = np.moveaxis(np.moveaxis(features, 1, -1) - bias, -1, 1).reshape(len(features), -1)
    oracle = linear @ np.linalg.pinv(matrix, rcond=1e-9)
    assert np.allclose(undo(features).reshape(oracle.shape), oracle, atol=1e-4)


@given(case=convolution_cases())
def test_features_of_rebuilt_images_are_the_features(case):
    assume(sees_something(case.layer))
    features = features_of(case.layer, case.batch)
    again = features_of(case.layer, Deconvolution.of(case.layer)(features).astype(np.float64))
    assert np.allclose(again, features, atol=1e-3 * np.abs(features).max())


def test_a_layer_that_sees_nothing_says_so():
    layer = mole.FirstLayer.conv(np.zeros((2, 1, 3, 3)), None, input_shape=(1, 5, 5))
    with pytest.raises(NotApplicableError, match="do not depend on the images"):
        Deconvolution.of(layer)


@given(case=layer_cases(), seed=st.integers(0, 2**32))
def test_the_inverse_core_is_the_keys(case, seed):
    assume(sees_something(case.layer))
    rng = np.random.default_rng(seed)
    delivery = Delivery(case.layer, case.batch, kappa=case.kappa, seed=seed_of(rng), dtype="float64")
    view = delivery.developer
    equations = CoreEquations.of(case.layer, view.cut)
    rows = np.arange(equations.side)
    assert equations.residual(view, delivery.order, rows) < 1e-4
    bands = mole.layer_matrix(case.layer).reshape(case.kappa, equations.side, -1)
    stacked = np.concatenate(list(bands), axis=1)
    singular = np.linalg.svd(stacked, compute_uv=False)
    if len(singular) == equations.side and singular[-1] > 1e-2 * singular[0]:
        assert equations.is_determined
        solved = equations.solve(view, delivery.order, rows)
        assert np.allclose(solved, delivery.key.morphing.core.inverse, atol=1e-4)


def test_a_wrong_order_leaves_much_unexplained(rng):
    weight = rng.normal(size=(8, 1, 3, 3))
    layer = mole.FirstLayer.conv(weight, None, input_shape=(1, 8, 8), padding=1)
    delivery = Delivery(layer, rng.normal(size=(1, 1, 8, 8)))
    view = delivery.developer
    equations = CoreEquations.of(layer, view.cut)
    assert equations.residual(view, delivery.order, np.arange(64)) < 1e-5
    assert equations.residual(view, np.roll(delivery.order, 1), np.arange(64)) > 0.5
