"""C^ac in two factors: the same features, fewer numbers, and nothing that C^ac does not show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mole
from images import smooth_images
from mole.errors import ParameterError, ShapeError
from mole.scheme.factored import FactoredMatrix, components_of, form_for, numbers_in_rows
from mole.scheme.factoring import factors_of
from mole.scheme.layer_matrix import layer_matrix
from strategies import layer_cases

SEED = bytes(range(32))


def layer_of(rng: np.random.Generator, channels: int = 40, **how) -> mole.FirstLayer:
    how = {"input_shape": (3, 6, 7), "padding": 1, **how}
    weight = rng.normal(size=(channels, 3, 3, 3)).astype(np.float32)
    return mole.FirstLayer.conv(weight, rng.normal(size=channels).astype(np.float32), **how)


def key_for(layer: mole.FirstLayer, kappa: int = 1, core: str = "orthogonal", sample=None) -> mole.MorphKey:
    return mole.MorphKey.generate(
        layer.input_shape, kappa=kappa, core=core, sample=sample, insecure_seed=SEED
    )


@given(case=layer_cases(), core=st.sampled_from(["orthogonal", "gaussian"]))
def test_factors_give_torchs_features(case, core):
    key = mole.MorphKey.generate(case.layer.input_shape, kappa=case.kappa, core=core, insecure_seed=SEED)
    augmented = mole.augment(case.layer, key, dtype="float64", form="factored")
    features = augmented.features(mole.morph(case.batch, key))
    expected = case.torch_features()[:, key.channel_order(case.layer.channels)]
    assert features.shape == expected.shape
    assert np.allclose(features, expected, atol=1e-7)


@pytest.mark.parametrize(
    ("core", "kappa"),
    [("orthogonal", 1), ("orthogonal", 6), ("gaussian", 1), ("gaussian", 2), ("whitened", 1)],
)
def test_whoever_has_c_ac_can_work_out_the_same_factors(rng, core, kappa):
    """So they show nothing that C^ac does not: no column of M^-1 in particular."""
    layer = layer_of(rng)
    sample = smooth_images(rng, 400, layer.input_shape) if core == "whitened" else None
    key = key_for(layer, kappa, core, sample)
    dense = mole.augment(layer, key, dtype="float64", form="dense")
    made = mole.augment(layer, key, dtype="float64", form="factored")
    found = factors_of(dense.matrix, layer.output_shape, components_of(layer))
    assert np.allclose(found.basis, made.weight, rtol=0, atol=1e-7 * np.abs(made.weight).max())
    assert np.allclose(found.mixing, made.mixing, rtol=0, atol=1e-7)
    stranger = mole.MorphKey.generate(layer.input_shape, kappa=kappa, insecure_seed=bytes(32))
    other = mole.augment(layer, stranger, dtype="float64", form="factored")
    assert not np.allclose(found.basis, other.weight, atol=1e-2 * np.abs(found.basis).max())  # the twin


def test_kernels_that_would_let_columns_of_the_inverse_through(rng):
    """All singular values alike: then any rotation of the basis is one, and M^-1 is the basis before W."""
    rotation = np.linalg.qr(rng.normal(size=(40, 27)))[0].reshape(40, 3, 3, 3)
    layer = mole.FirstLayer.conv(rotation, None, input_shape=(3, 6, 7))
    key = key_for(layer)
    made = mole.augment(layer, key, dtype="float64", form="factored")
    dense = mole.augment(layer, key, dtype="float64", form="dense")
    found = factors_of(dense.matrix, layer.output_shape, 27)
    assert np.allclose(found.basis, made.weight, atol=1e-9)
    inverse = key.morphing.core.inverse
    basis = made.weight / np.linalg.norm(made.weight, axis=0)
    likeness = np.abs(inverse.T / np.linalg.norm(inverse.T, axis=1, keepdims=True) @ basis)
    assert likeness.max() < 0.9


def test_it_is_the_papers_product(rng):
    layer = layer_of(rng, stride=2)
    key = key_for(layer)
    augmented = mole.augment(layer, key, dtype="float64")
    assert augmented.form == "factored"
    product = key.morphing.core.inverse @ layer_matrix(layer).astype(np.float64)
    whole = product.reshape(126, 40, 12)[:, key.channel_order(40)].reshape(126, 480)
    chosen = np.array([5, 0, 125, 5])
    assert np.allclose(augmented.matrix, whole, atol=1e-10)
    assert np.allclose(augmented.rows(chosen), whole[chosen], atol=1e-10)
    assert np.allclose(augmented.columns(chosen * 3), whole[:, chosen * 3], atol=1e-10)


def test_channels_of_very_different_size_each_keep_their_digits(rng):
    layer = layer_of(rng)
    layer.weight[:] *= np.logspace(0, -7, 40, dtype=np.float32)[:, None, None, None]
    layer.weight[3], layer.weight[7] = 0, layer.weight[2]
    key = key_for(layer)
    half, exact = mole.augment(layer, key), mole.augment(layer, key, dtype="float64", form="dense")
    true, found = (one.matrix.reshape(126, 40, -1) for one in (exact, half))
    sizes = np.linalg.norm(true, axis=(0, 2))
    assert (np.linalg.norm(found - true, axis=(0, 2)) <= 2e-6 * sizes).all()


def test_the_smaller_form_is_chosen(rng):
    wide, slim = layer_of(rng, 40), layer_of(rng, 16)
    assert (form_for(wide), form_for(slim)) == ("factored", "dense")
    for layer in (wide, slim):
        key = key_for(layer)
        made = mole.augment(layer, key)
        sizes = {form: mole.augment(layer, key, form=form).nbytes for form in ("dense", "factored")}
        assert made.nbytes == min(sizes.values()) == 4 * numbers_in_rows(layer)
        assert sizes == {form: 4 * numbers_in_rows(layer, form) for form in sizes}
        assert mole.augment(layer, key, dtype="float16").nbytes == made.nbytes // 2


def test_in_16_bits_it_is_as_close_as_a_matrix(rng):
    layer = layer_of(rng)
    key = key_for(layer)
    true = mole.augment(layer, key, dtype="float64").matrix
    for form in ("dense", "factored"):
        half = mole.augment(layer, key, dtype="float16", form=form)
        assert half.dtype == np.float16
        assert np.linalg.norm(half.matrix - true) < 1e-3 * np.linalg.norm(true)


def test_what_cannot_be_is_refused(rng):
    layer = layer_of(rng)
    key = key_for(layer)
    with pytest.raises(ParameterError, match="dense or factored, not 'round'"):
        mole.augment(layer, key, form="round")
    tiles = mole.MorphKey.generate((3, 8, 8), tile=4, insecure_seed=SEED)
    with pytest.raises(ParameterError, match="tiles has one form"):
        mole.augment(layer_of(rng, input_shape=(3, 8, 8)), tiles, form="factored")
    huge = mole.FirstLayer.conv(1e6 * layer.weight, None, input_shape=(3, 6, 7))
    with pytest.raises(ShapeError, match="do not fit in float16"):
        mole.augment(huge, key, dtype="float16")
    made = mole.augment(layer, key)
    shapes = made.input_shape, made.output_shape
    for basis, mixing in (
        (made.weight[:, 1:], made.mixing), (made.weight[1:], made.mixing),
        (made.weight, made.mixing[1:]), (made.weight, made.mixing[:, 1:]),
        (made.weight, made.mixing[..., 1:]), (made.weight, made.mixing[0]),
        (made.weight, made.mixing.astype(np.float64)),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match="an augmented layer in factors"):
            FactoredMatrix(basis, mixing, *shapes)
