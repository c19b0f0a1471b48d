"""Noise that is there is never told to be missing, however few the rows; noise that is missing is told."""

import numpy as np
import pytest

from mole.exchange.noise_check import ENOUGH, NoiseCheck
from mole.protection.certificate import Certificate

SIZES = [(1, 4), (4, 16), (8, 32), (12, 100), (16, 64), (16, 400), (32, 200)]


def problem(rows, *, sigma=1.0):
    check = NoiseCheck(Certificate(features=rows.shape[1], clip=1.0, sigma=sigma))
    check.see(rows)
    return check.problem()


@pytest.mark.parametrize(("features", "count"), SIZES)
@pytest.mark.parametrize("length", [0.0, 1.0], ids=["alone", "on features"])
def test_noise_that_is_there_passes_every_time(rng, features, count, length):
    for _ in range(300):
        clean = rng.normal(size=(count, features))
        clean *= length / np.linalg.norm(clean, axis=1, keepdims=True)
        assert problem(clean + rng.normal(size=clean.shape)) is None


@pytest.mark.parametrize(("features", "count"), [(12, 100), (16, 400), (32, 200)])
def test_a_direction_without_noise_is_found(rng, features, count):
    """As much in all: what one direction lacks, the others have."""
    spread = np.full(features, np.sqrt((features - 0.01) / (features - 1)))
    spread[0] = 0.1
    turned = np.linalg.qr(rng.normal(size=(features, features)))[0]
    for _ in range(30):
        told = problem(rng.normal(size=(count, features)) * spread @ turned)
        assert told is not None
        assert "in some direction" in told


def test_of_too_few_rows_no_direction_is_looked_at(rng):
    few = NoiseCheck(Certificate(features=8, clip=1.0, sigma=1.0))
    few.see(rng.normal(size=(8 * ENOUGH - 1, 8)))
    assert few.least_spread() is None
    few.see(rng.normal(size=(1, 8)))
    assert few.least_spread() is not None
