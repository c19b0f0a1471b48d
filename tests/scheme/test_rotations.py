"""The Q that is made in panels is LAPACK's, for every side and for matrices with nothing to reflect."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mole.scheme.rotations import PANEL, rotation_from
from mole.scheme.sharing_out import product


def by_lapack(matrix: np.ndarray) -> np.ndarray:
    q, r = np.linalg.qr(matrix)
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


@pytest.mark.parametrize("side", [1, 2, 17, PANEL - 1, PANEL, PANEL + 1, 2 * PANEL, 300])
def test_it_is_the_rotation_that_lapack_makes(rng, side):
    normal = rng.normal(size=(side, side))
    kept = normal.copy()
    rotation = rotation_from(normal)
    assert np.abs(rotation - by_lapack(normal)).max() < 1e-12
    assert np.allclose(rotation.T @ rotation, np.eye(side), atol=1e-13)
    assert np.diagonal(rotation.T @ normal).min() > 0  # R's diagonal
    assert np.array_equal(normal, kept)


def test_columns_that_need_no_reflection_are_left(rng):
    upper = np.triu(rng.normal(size=(200, 200)))
    np.fill_diagonal(upper, -np.abs(np.diagonal(upper)))
    assert np.allclose(rotation_from(upper), -np.eye(200), atol=1e-12)


def test_a_nan_does_not_get_lost():
    assert not np.isfinite(rotation_from(np.full((4, 4), np.nan))).all()


def test_progress_is_told_to_the_end(rng):
    told = []
    rotation_from(rng.normal(size=(300, 300)), lambda done, total: told.append((done, total)))
    assert told == [(step, 6) for step in range(1, 7)]


def test_the_number_of_threads_does_not_show(rng, monkeypatch):
    normal, other = rng.normal(size=(2, 600, 600))
    many = rotation_from(normal), product(normal, other)
    monkeypatch.setattr("mole.scheme.sharing_out.processors", lambda: 1)
    assert np.array_equal(rotation_from(normal), many[0])
    assert np.array_equal(product(normal, other), many[1])
    assert np.allclose(many[1], normal @ other, atol=1e-10)


def test_the_number_of_threads_is_given_back(rng):
    before = [library["num_threads"] for library in threadpool_info()]
    rotation_from(rng.normal(size=(150, 150)))
    assert [library["num_threads"] for library in threadpool_info()] == before
