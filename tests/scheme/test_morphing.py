import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mole
from mole.errors import ParameterError, ShapeError
from mole.scheme.shapes import FloatType, element_count, unroll, valid_kappas

SEED = bytes(range(32))


def make_key(shape, **arguments) -> mole.MorphKey:
    return mole.MorphKey.generate(shape, insecure_seed=SEED, **arguments)


def block_diagonal(core: np.ndarray, kappa: int) -> np.ndarray:
    """M of the paper's equation 4, element by element."""
    q = len(core)
    matrix = np.zeros((q * kappa, q * kappa))
    for x in range(q * kappa):
        for y in range(q * kappa):
            if x // q == y // q:
                matrix[x, y] = core[x % q, y % q]
    return matrix


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    core=st.sampled_from(["orthogonal", "gaussian"]),
    data=st.data(),
)
def test_morphing_is_the_product_with_the_block_diagonal_matrix(shape, core, data):
    kappa = data.draw(st.sampled_from(valid_kappas(shape)))
    key = make_key(shape, kappa=kappa, core=core)
    batch = np.random.default_rng(0).normal(size=(3, *shape))
    matrix = block_diagonal(key.morphing.core.matrix, kappa)
    morphed = mole.morph(batch, key)
    assert np.allclose(unroll(morphed), unroll(batch) @ matrix, atol=1e-12)
    assert np.allclose(mole.unmorph(morphed, key), batch, atol=1e-8)
    elements = element_count(shape)
    inverse = key.morphing.inverse_rows(0, elements, dtype=np.dtype(np.float64))
    assert np.allclose(matrix @ inverse, np.eye(elements), atol=1e-8)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float16", 3e-3), ("float32", 1e-6), ("float64", 1e-14), ("longdouble", 1e-14)],
)
def test_shape_and_dtype_stay(rng, dtype: FloatType, tolerance):
    key = make_key((3, 8, 8), kappa=3)
    batch = rng.normal(size=(5, 3, 8, 8)).astype(dtype)
    morphed = mole.morph(batch, key)
    assert morphed.shape == batch.shape
    assert morphed.dtype == batch.dtype
    assert np.abs(morphed - batch).max() > 0.5
    assert np.abs(mole.unmorph(morphed, key) - batch).max() < 5 * tolerance


def test_rows_and_empty_batches_are_taken_too(rng):
    key = make_key((3, 8, 8))
    batch = rng.normal(size=(5, 3, 8, 8))
    assert np.array_equal(mole.morph(unroll(batch), key), unroll(mole.morph(batch, key)))
    assert mole.morph(batch[:0], key).shape == (0, 3, 8, 8)


def test_another_key_does_not_unmorph(rng):
    batch = rng.normal(size=(5, 3, 8, 8))
    morphed = mole.morph(batch, make_key((3, 8, 8)))
    wrong = mole.unmorph(morphed, mole.MorphKey.generate((3, 8, 8), insecure_seed=bytes(32)))
    assert np.linalg.norm(wrong - batch) > np.linalg.norm(batch)


def test_a_batch_that_cannot_be_morphed_is_refused():
    key = make_key((1, 4, 4))
    with pytest.raises(ShapeError, match=r"uint8, not a float type: normalise"):
        mole.morph(np.zeros((2, 1, 4, 4), dtype=np.uint8), key)
    with pytest.raises(ShapeError, match=r"expected \(batch, 1, 4, 4\)"):
        mole.morph(np.zeros((2, 4, 4)), key)
    batch = np.zeros((4, 1, 4, 4))
    batch[2, 0, 1, 1] = np.nan
    with pytest.raises(ShapeError, match="sample 2 of the batch has a NaN"):
        mole.morph(batch, key)
    with pytest.raises(ShapeError, match="do not fit in float16"):
        mole.morph(np.full((1, 1, 4, 4), 6e4, dtype=np.float16), key)
    with pytest.raises(ShapeError, match="do not fit in float32"):
        mole.morph(np.full((1, 1, 4, 4), 3e38, dtype=np.float32), key)
    for wrong in ([[1.0]], None, "images"):
        with pytest.raises(ShapeError, match="not a NumPy array"):
            mole.morph(wrong, key)


def test_impossible_parameters_are_refused(rng):
    with pytest.raises(ParameterError, match="kappa = 5"):
        make_key((1, 4, 4), kappa=5)
    with pytest.raises(ParameterError, match="core 'secret' is unknown"):
        make_key((1, 4, 4), core="secret")
    with pytest.raises(ParameterError, match="use kappa = 12 or more"):
        make_key((3, 224, 224))
    with pytest.raises(ParameterError, match="give a sample"):
        make_key((1, 4, 4), core="whitened")
    with pytest.raises(ParameterError, match="a sample is for core='whitened'"):
        make_key((1, 4, 4), sample=rng.normal(size=(9, 1, 4, 4)))
    for seed in (b"abc", 32, "a" * 32):
        with pytest.raises(ParameterError, match="a seed is 32 bytes"):
            mole.MorphKey.generate((1, 4, 4), insecure_seed=seed)
    with pytest.raises(ParameterError, match="more than 16777216 elements"):
        make_key((1, 999_999_937, 999_999_937))


def test_a_core_that_hides_nothing_is_refused():
    with pytest.raises(ParameterError, match="hides next to nothing: use kappa = 4 or less"):
        mole.MorphKey.generate((1, 8, 8), kappa=64)
    with pytest.raises(ParameterError, match="give larger samples"):
        mole.MorphKey.generate((3, 2, 2))


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (np.zeros((40, 1, 4, 4), dtype=np.uint8), "the sample is uint8"),
        (np.full((40, 1, 4, 4), np.nan), "sample 0 of the sample has a NaN"),
        ([[1.0]], "the sample is a list"),
        (np.array(["a"]), "not a float type"),
        (np.zeros((40, 1, 4, 5)), "expected"),
        (np.zeros((20, 1, 4, 4)), "no variance"),
    ],
)
def test_a_sample_that_is_no_plain_data_is_refused(sample, reason):
    with pytest.raises(ShapeError, match=reason):
        make_key((1, 4, 4), core="whitened", sample=sample)
