"""Learning from noisy rows, and what they give away, on made-up features whose truth is known."""

import numpy as np
import pytest

from mole.experiments.channel_scores import (
    Features,
    Parts,
    adapted_accuracy,
    calibrated_accuracy,
    identified,
    logistic,
    score,
    scored,
)
from mole.experiments.learned_decoder import inversion
from mole.protection import Certificate
from mole.protection.head import Head

FEATURES = 24


def blobs(count: int, seed: int, *, apart: float = 1.0) -> Features:
    """Three classes of features, mostly told apart by their means."""
    rng = np.random.default_rng(seed)
    means = apart * np.eye(3, FEATURES)
    labels = rng.integers(3, size=count)
    rows = means[labels] + 0.25 * rng.normal(size=(count, FEATURES))
    return Features.of(rows, labels)


@pytest.fixture
def parts() -> Parts:
    return Parts(blobs(3000, 0), blobs(1000, 1), None, 3)


def test_features_are_clipped_before_anything_else(parts):
    assert np.linalg.norm(parts.train.rows, axis=1).max() <= 1


def test_noise_costs_accuracy_and_hides_images(parts):
    plain = score(parts, None)
    some, much = (score(parts, Certificate.for_bits(bits, features=FEATURES)) for bits in (20.0, 0.5))
    assert plain["accuracy"] > 0.9
    assert plain["accuracy"] >= some["accuracy"] - 0.03
    assert some["accuracy"] > 0.8
    assert much["identified"] < 0.03 < some["identified"]
    assert "identified" not in plain


def test_the_measured_identification_stays_below_its_bound(parts):
    for bits in (1.0, 8.0):
        certificate = Certificate.for_bits(bits, features=FEATURES)
        found = identified(parts.train, parts.train.noisy(certificate), certificate)
        assert found <= certificate.identification(1000) + 0.01
    assert identified(parts.train, parts.train, None) == 1  # and without noise there is none


def test_labels_that_mean_nothing_teach_nothing(parts):
    shuffled = Features(parts.train.rows, np.random.default_rng(2).permutation(parts.train.labels))
    found = scored(logistic(shuffled, 1e-4, 3), parts.test)
    assert found.accuracy < 0.6
    assert found.auc == pytest.approx(0.5, abs=0.2)


def test_logistic_regression_finds_what_classes_differ_in():
    rows = blobs(2000, 3)
    assert scored(logistic(rows, 1e-4, 3), rows).accuracy > 0.9


def test_calibration_puts_a_wrong_intercept_right():
    rng = np.random.default_rng(0)
    labels = (rng.random(800) < 0.3).astype(np.int64)
    rows = Features(np.where(labels, 1.0, -1.0)[:, None] + 0.5 * rng.normal(size=(800, 1)), labels)
    wrong = Head(np.array([[0.0], [1.0]]), np.array([0.0, 2.0]))
    half, rest = rows.first(400), Features(rows.rows[400:], rows.labels[400:])
    assert scored(wrong, rest).accuracy < 0.6
    assert calibrated_accuracy(wrong, half, rest) > 0.95


def test_adapting_mends_a_head_that_calibration_cannot():
    own, rest = blobs(300, 6), blobs(1000, 7)
    two = [Features(one.rows[one.labels < 2], one.labels[one.labels < 2]) for one in (own, rest)]
    elsewhere = Head(np.eye(2, FEATURES, k=5), np.zeros(2))
    assert calibrated_accuracy(elsewhere, *two) < 0.7
    assert adapted_accuracy(elsewhere, *two) > 0.9


@pytest.fixture
def pictures() -> tuple[Features, np.ndarray]:
    """Images that are a linear function of their features: everything can be rebuilt."""
    rows = blobs(1200, 4)
    weight = np.random.default_rng(5).normal(size=(FEATURES, 36)) / FEATURES**0.5
    return rows, (0.5 + rows.rows @ weight).reshape(-1, 1, 6, 6)


def test_a_decoder_rebuilds_images_without_noise_and_no_more_than_their_mean_with_much(pictures):
    rows, images = pictures
    known, unknown = rows.first(1000), Features(rows.rows[1000:], rows.labels[1000:])
    clear, hidden = (
        inversion(known, images[:1000], unknown, images[1000:], bits=bits, epochs=60)
        for bits in (None, 0.05)
    )
    assert clear["decoder_db"] > clear["mean_image_db"] + 5
    assert abs(hidden["decoder_db"] - hidden["mean_image_db"]) < 0.2
    assert clear["correlation"] > 0.8
    assert hidden["correlation"] < 0.3
