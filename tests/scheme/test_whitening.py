"""What a whitening learns from many images and from few."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage

from images import smooth_images
from mole.errors import ShapeError
from mole.provider.keys.derivation import WordStream
from mole.scheme.morphing import whitened_core
from mole.scheme.whitening import SPECTRUM_FLOOR, Whitening, ledoit_wolf

SIDE = 192


def images(rng: np.random.Generator, count: int) -> np.ndarray:
    return smooth_images(rng, count, (3, 8, 8)).reshape(count, SIDE)


def covariance(blocks: np.ndarray) -> np.ndarray:
    return np.cov(blocks.astype(np.float64), rowvar=False, bias=True)


def core_of(whitening: Whitening) -> np.ndarray:
    normal = WordStream(bytes(32), "test").normals(SIDE * SIDE).reshape(SIDE, SIDE)
    return whitened_core(normal, whitening)


def test_a_sample_that_is_large_enough_is_taken_as_it_is(rng):
    """The plain formula, where all images count alike."""
    blocks = images(rng, 2 * SIDE)
    variances, directions = np.linalg.eigh(covariance(blocks))
    kept = np.maximum(variances, SPECTRUM_FLOOR * variances[-1])
    expected = (directions / np.sqrt(kept)) @ directions.T
    found = Whitening.estimate(blocks)
    assert np.abs(found.matrix - expected).max() < 1e-6 * np.abs(expected).max()
    assert (found.blocks, found.shrinkage) == (2 * SIDE, 0.0)
    fewer = Whitening.estimate(blocks[:-1])
    assert fewer.shrinkage > 0


@pytest.mark.parametrize("count", [5, 60, 300])
def test_the_shrinkage_is_scikit_learns(rng, count):
    blocks = images(rng, count)
    found = ledoit_wolf(blocks, covariance(blocks))
    assert found == pytest.approx(ledoit_wolf_shrinkage(blocks.astype(np.float64)), rel=1e-6)
    assert 0 < found < 1


def test_blocks_that_vary_equally_or_are_counted_in_parts_shrink_alike(rng, monkeypatch):
    blocks = rng.normal(size=(50, 8))
    whole = ledoit_wolf(blocks, covariance(blocks))
    monkeypatch.setattr("mole.scheme.whitening.BLOCKS_AT_ONCE", 7)
    assert ledoit_wolf(blocks, covariance(blocks)) == pytest.approx(whole)
    assert ledoit_wolf(np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]), np.eye(2) / 2) == 1.0


@pytest.mark.parametrize("count", [20, 100, 300])
def test_few_images_are_whitened_without_a_rank(rng, count):
    """Variances of morphed data are one, or small; never nearly one in the order of the images' own."""
    blocks = images(rng, count)
    whitening = Whitening.estimate(blocks)
    core = core_of(whitening)
    morphed = np.linalg.eigvalsh(covariance(blocks @ core.matrix))
    plain = np.linalg.eigvalsh(covariance(blocks))
    level = whitening.shrinkage * plain.mean()
    strong = int((plain > level).sum())
    assert strong >= 10
    assert np.abs(morphed[-strong:] - 1).max() < 1e-4
    assert morphed[0] > -1e-6
    assert core.condition < 1.1 * np.sqrt(plain[-1] / level) < 1000
    added = (
        1 - whitening.shrinkage
    ) * plain + level  # Ledoit and Wolf's own: the twin that keeps the order
    assert np.all(np.diff((plain / added)[-strong:]) > 0)


def test_weights_move_every_direction(rng):
    """Variances of the sample, morphed, differ by some per cent, in an order of their own."""
    many, few = images(rng, 2 * SIDE), images(rng, 150)
    normal = rng.normal(size=2 * SIDE)
    exactly, weighted = (
        np.linalg.eigvalsh(covariance(many @ Whitening.estimate(many, weights).matrix.astype(np.float64)))
        for weights in (None, normal)
    )
    assert np.abs(exactly[-60:] - 1).max() < 1e-4
    assert 0.05 < np.abs(weighted[-60:] - 1).max() < 1
    weighted = Whitening.estimate(few, normal[:150])
    assert weighted.digest == Whitening.estimate(few, normal[:150]).digest
    assert weighted.digest != Whitening.estimate(few, -normal[:150]).digest
    variances, directions = np.linalg.eigh(covariance(few @ weighted.matrix.astype(np.float64)))
    plain = np.linalg.eigh(covariance(few))[1]
    assert 0.3 < variances[-60] < 0.95
    assert 1.05 < variances[-1] < 3
    overlap = np.abs(directions[:, ::-1].T @ plain[:, ::-1])[:10, :10]
    assert overlap.max() < 0.7
    exact = Whitening.estimate(few).matrix.astype(np.float64)
    assert np.abs(np.linalg.eigvalsh(covariance(few @ exact))[-60:] - 1).max() < 1e-4


@pytest.mark.parametrize("count", [20, 100, 300])
def test_images_that_come_later_are_flatter_too_and_come_back(rng, count):
    sample, later = images(rng, count), images(rng, 500)
    core = core_of(Whitening.estimate(sample))
    plain, morphed = (
        np.linalg.eigvalsh(covariance(rows)) for rows in (later, later.astype(np.float64) @ core.matrix)
    )
    assert morphed[-1] / morphed[-20] < 0.75 * plain[-1] / plain[-20]
    stored = (later @ core.matrix.astype(np.float32)).astype(np.float32)
    back = stored @ core.inverse.astype(np.float32)
    assert np.abs(back - later).max() < 1e-4
    scales = np.abs(stored).max(axis=0) / 127
    eight_bits = np.rint(stored / scales) * scales
    error = np.linalg.norm(eight_bits @ core.inverse - later) / np.linalg.norm(later)
    assert error < 0.03


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        (np.ones((1, 4)), "no variance"),
        (np.ones((7, 4)), "no variance"),
        (np.ones((8, 4)), "no variance"),
        (np.full((8, 4), np.nan), "no variance|cannot be computed"),
    ],
)
def test_a_useless_sample_is_refused(blocks, reason):
    with pytest.raises(ShapeError, match=reason):
        Whitening.estimate(blocks)
