import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from images import smooth_images
from mole.errors import CoreError
from mole.provider.keys.derivation import WordStream
from mole.scheme.morphing import gaussian_core, orthogonal_core, whitened_core
from mole.scheme.whitening import Whitening


def normal(size: int, seed: int = 0) -> np.ndarray:
    return WordStream(seed.to_bytes(32, "big"), "test").normals(size * size).reshape(size, size)


@given(size=st.integers(1, 40), seed=st.integers(0, 2**64))
def test_orthogonal_cores_are_orthogonal_without_a_zero(size, seed):
    core = orthogonal_core(normal(size, seed))
    assert np.allclose(core.matrix @ core.matrix.T, np.eye(size), atol=1e-12)
    assert np.array_equal(core.inverse, core.matrix.T)
    assert np.count_nonzero(core.matrix) == size * size
    assert core.condition == pytest.approx(1, abs=1e-9)


def test_orthogonal_cores_are_drawn_evenly():
    """Without the sign fix, rotations and reflections, and the signs of corners, would be lopsided."""
    cores = np.array([orthogonal_core(normal(3, seed)).matrix for seed in range(2000)])
    assert abs(np.linalg.det(cores).mean()) < 0.1
    assert np.abs(cores.mean(axis=0)).max() < 0.06  # five standard errors of 1/sqrt(3 * 2000)
    assert np.allclose((cores**2).mean(axis=0), 1 / 3, atol=0.04)


@given(size=st.integers(1, 40), seed=st.integers(0, 2**64))
def test_gaussian_cores_are_inverted_or_refused(size, seed):
    matrix = normal(size, seed)
    try:
        core = gaussian_core(matrix)
    except CoreError:
        assert np.linalg.cond(matrix) > 25 * size  # the limit is 32, the estimate a little low
    else:
        assert np.allclose(core.matrix @ core.inverse, np.eye(size), atol=1e-9)
        assert core.condition == pytest.approx(np.linalg.cond(matrix), rel=0.2)


def test_estimated_condition_is_right_for_a_large_core():
    core = gaussian_core(normal(300, 3))
    assert core.condition == pytest.approx(np.linalg.cond(core.matrix), rel=0.05)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (np.ones((4, 4)), "inverted|condition"),
        (np.eye(4), "zero"),
        (np.full((4, 4), np.nan), "NaN"),
        (np.ones((4, 4)) + 1e-6 * np.eye(4), "condition number"),
    ],
)
def test_useless_matrices_are_refused(matrix, reason):
    with pytest.raises(CoreError, match=reason):
        gaussian_core(matrix)


def test_an_orthogonal_core_with_a_zero_is_refused():
    with pytest.raises(CoreError, match="zero"):
        orthogonal_core(np.eye(4))


def test_whitened_morphing_leaves_no_covariance(rng):
    blocks = smooth_images(rng, 4000, (1, 8, 8)).reshape(4000, 64)
    core = whitened_core(normal(64), Whitening.estimate(blocks))
    morphed = np.cov(blocks @ core.matrix, rowvar=False, bias=True)
    plain = np.cov(blocks, rowvar=False, bias=True)
    assert np.abs(morphed - np.eye(64)).max() < 1e-3
    assert np.abs(plain - np.eye(64)).max() > 0.5  # the same check fails on plain data
    assert np.allclose(core.matrix @ core.inverse, np.eye(64), atol=1e-9)


def test_whitening_works_on_images_that_were_not_in_the_sample(rng):
    sample, others = (smooth_images(rng, 1000, (1, 8, 8)).reshape(1000, 64) for _ in range(2))
    core = whitened_core(normal(64), Whitening.estimate(sample))
    largest = np.linalg.eigvalsh(np.cov(others @ core.matrix, rowvar=False))[-1]
    plain = np.linalg.eigvalsh(np.cov(others, rowvar=False))
    assert largest < 3
    assert plain[-1] / plain.mean() > 5  # what it would have been


def test_the_floor_bounds_the_condition_of_flat_data(rng):
    blocks = np.zeros((100, 16))
    blocks[:, :3] = rng.normal(size=(100, 3))  # thirteen pixels that never change
    core = whitened_core(normal(16), Whitening.estimate(blocks))
    assert 900 < core.condition <= 1100


def test_an_inverse_is_made_when_it_is_asked_for_and_checked(rng):
    whitening = np.eye(4, dtype=np.float32)
    whitening[0, 0] = 1e-5  # beyond any that is estimated
    core = whitened_core(normal(4), Whitening(whitening))
    assert "inverse" not in vars(core)
    with pytest.raises(CoreError, match="condition number"):
        _ = core.inverse


def test_a_rotation_that_is_none_is_refused(monkeypatch):
    monkeypatch.setattr("mole.scheme.morphing.rotation_from", lambda matrix, _: matrix)
    with pytest.raises(CoreError, match="not orthogonal"):
        orthogonal_core(normal(8))


def test_secrets_do_not_show():
    core = orthogonal_core(normal(3))
    assert repr(core) == "Core(3x3, secret)"
    assert repr(Whitening(np.eye(3, dtype=np.float32))) == "Whitening(3x3, secret)"
