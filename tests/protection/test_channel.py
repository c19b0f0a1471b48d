"""Clip, noise and grid, at the edges of floating point and against each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from mole.errors import ParameterError, ShapeError
from mole.protection import Certificate, FreshNoise, clip, release
from mole.protection.channel import grid_step

pytestmark = pytest.mark.fresh_draws
ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 40)), elements=ANY), st.floats(1e-6, 1e6)
)
def test_no_row_is_longer_than_the_clip(features, most):
    clipped, bad = clip(features, most)
    assert clipped.shape == features.shape
    assert np.isfinite(clipped).all()
    exact = np.sqrt((clipped.astype(np.longdouble) ** 2).sum(axis=1))
    assert (exact <= most).all()
    assert bad == np.count_nonzero(~np.isfinite(features))


@given(arrays(np.float64, (3, 8), elements=st.floats(-1, 1)))
def test_short_rows_stay_as_they_are_and_long_ones_keep_their_direction(features):
    clipped, _ = clip(features, 3.0)
    assert np.array_equal(clipped, features)
    shorter, _ = clip(1e200 * features, 1.0)
    lengths = np.linalg.norm(features, axis=1)
    for row, short, length in zip(features, shorter, lengths, strict=True):
        if length > 1e-100:
            assert np.allclose(short, row / length, atol=1e-9)


def test_features_come_as_rows():
    with pytest.raises(ShapeError, match=r"rows, \(n, d\)"):
        clip(np.zeros((2, 3, 3)), 1.0)


def test_noise_is_normal_independent_and_new_every_time():
    one, other = (FreshNoise().normals(20_001) for _ in range(2))
    assert one.shape == (20_001,)
    assert stats.kstest(one, "norm").pvalue > 1e-9  # chance alone is below it once in as many runs
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.05
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 0.05
    assert "secret" in repr(FreshNoise())


@pytest.mark.parametrize("sigma", [0.01, 0.847, 3.0])
def test_what_leaves_lies_on_the_grid_with_noise_of_its_size(sigma):
    step = grid_step(sigma)
    assert sigma / 128 < step <= sigma / 64
    rows = release(np.zeros((500, 64)), Certificate.for_sigma(sigma, features=64), FreshNoise())
    assert np.array_equal(rows, np.rint(rows / step) * step)
    assert rows.std() == pytest.approx(sigma, rel=0.05)
    assert np.array_equal(rows, rows.astype(np.float32))  # nothing more is lost when it is stored


def test_two_releases_of_the_same_features_differ():
    features = np.full((4, 16), 0.1)
    one, other = (release(features, Certificate.for_bits(1.0, features=16), FreshNoise()) for _ in range(2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("certificate", [Certificate(4, 1.0, 0.5), Certificate.for_bits(1.0, features=4)])
def test_rows_longer_than_the_clip_get_no_noise(certificate):
    with pytest.raises(ParameterError, match="longer than their certificate allows"):
        release(np.full((2, 4), 0.6), certificate, FreshNoise())
