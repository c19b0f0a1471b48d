"""The scorer gives full marks to the truth, none to noise, and fits only what an attack left open."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mole.attacks.tools.attack import Finding, UpTo
from mole.audit.scoring import Truth, aligned, score
from mole.scheme.likeness import correlations
from mole.scheme.normalisation import Normalisation

NORMALISATION = Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3))


@pytest.fixture
def plain(rng):
    pixels = rng.integers(0, 256, size=(20, 3, 4, 4), dtype=np.uint8).repeat(3, axis=2).repeat(3, axis=3)
    return NORMALISATION.apply(pixels)


def test_the_truth_scores_full_marks(plain):
    found = score(Finding("", images=plain.copy()), Truth(plain, NORMALISATION))
    assert found.psnr == 150
    assert found.ssim == pytest.approx(1)
    assert found.correlation == pytest.approx(1)
    assert found.rmse == 0
    assert (found.reidentified, found.among) == (1, 20)
    assert found.channels is None
    assert found.best_map is None


def test_noise_scores_nothing(plain, rng):
    noise = rng.normal(size=plain.shape)
    found = score(Finding("", images=noise), Truth(plain, NORMALISATION))
    assert found.psnr < 12
    assert abs(found.correlation) < 0.1
    assert found.ssim < 0.2
    assert found.reidentified <= 0.3
    assert found.rmse > 1


def test_psnr_is_that_of_pixels(plain):
    grey = NORMALISATION.apply(np.full(plain.shape, 0.5, np.float32))
    a_tenth = 0.1 / np.reshape(NORMALISATION.std, (3, 1, 1))
    assert score(Finding("", images=grey + a_tenth), Truth(grey, NORMALISATION)).psnr == pytest.approx(20)


def test_only_what_is_left_open_is_fitted(plain, rng):
    truth = Truth(plain, NORMALISATION)
    mix = rng.normal(size=(3, 3))
    mixed = np.einsum("nchw,cd->ndhw", plain, mix) + 0.7
    assert score(Finding("", images=mixed, up_to=UpTo.COLOURS), truth).psnr > 80
    assert score(Finding("", images=mixed), truth).psnr < 30
    assert score(Finding("", images=-3 * plain + 1, up_to=UpTo.CONTRAST), truth).psnr > 80
    assert score(Finding("", images=mixed, up_to=UpTo.CONTRAST), truth).psnr < 30
    noise = Finding("", images=rng.normal(size=plain.shape), up_to=UpTo.COLOURS)
    assert score(noise, truth).reidentified <= 0.3
    assert aligned(noise, truth).std(axis=(0, 2, 3)).max() < 0.2  # fitting noise gives grey, not the truth


def test_channels_in_their_places(plain):
    truth = Truth(plain, None, np.array([2, 0, 1, 3]))
    assert score(Finding("", channel_order=np.array([2, 0, 1, 3])), truth).channels == 1
    assert score(Finding("", channel_order=np.array([2, 0, 3, 1])), truth).channels == 0.5
    assert score(Finding("", channel_order=np.array([2, 0, 3, 1])), Truth(plain)).channels is None


def test_the_best_map_counts(plain, rng):
    noise = rng.normal(size=(20, 5, 12, 12))
    maps = noise.copy()
    maps[:, 3] = -plain.mean(axis=1)
    assert score(Finding("", maps=maps), Truth(plain)).best_map == pytest.approx(1)
    assert score(Finding("", maps=noise), Truth(plain)).best_map < 0.4
    small = plain.mean(axis=1)[:, np.newaxis, 1::3, 1::3]
    assert score(Finding("", maps=small), Truth(plain)).best_map == pytest.approx(1)


def test_components_are_compared_with_the_true_ones(plain, rng):
    rows = plain.reshape(20, -1)
    directions = np.linalg.qr(rng.normal(size=(rows.shape[1], 2)))[0].T
    true = rows @ directions.T
    claimed = np.column_stack([-2 * true[:, 0], rng.normal(size=20)])
    found = score(Finding("", directions=directions, coefficients=claimed), Truth(plain)).components
    assert found[0] == pytest.approx(1)
    assert found[1] < 0.7


def test_distances_and_neighbours(plain, rng):
    true = cdist(plain.reshape(20, -1), plain.reshape(20, -1))
    found = score(Finding("", distances=5 * true), Truth(plain))
    assert found.neighbours == 1
    assert found.distance_correlation == pytest.approx(1)
    table = rng.random((20, 20))
    made_up = score(Finding("", distances=table + table.T), Truth(plain))
    assert made_up.neighbours < 0.5
    assert abs(made_up.distance_correlation) < 0.3


def test_correlations_of_constants_are_nothing():
    assert correlations(np.ones((1, 4)), np.arange(8.0).reshape(2, 4)).tolist() == [[0, 0]]
