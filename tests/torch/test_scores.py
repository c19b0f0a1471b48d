"""Figures of a score against scikit-learn's, which counts them in its own way."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, roc_auc_score

from mole.scores import area_under_curve
from mole.torch import Evaluation, Score, evaluate


def chances(rng, rows, classes, *, steps=None):
    """Random probabilities; with few steps, many rows have the same."""
    raw = rng.integers(1, steps, (rows, classes)) if steps else rng.gamma(1, size=(rows, classes))
    return raw / raw.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("steps", [None, 4])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_random_answers_are_scored_as_by_scikit_learn(rng, classes, steps):
    labels, given = rng.integers(0, classes, 300), chances(rng, 300, classes, steps=steps)
    given[labels == 0, 0] += 0.2  # a network that has learned a little
    given /= given.sum(axis=1, keepdims=True)
    score = Score(1.0, 0.5, labels, given)
    theirs = roc_auc_score(labels, given[:, 1] if classes == 2 else given, multi_class="ovr")
    assert score.auc == pytest.approx(theirs, abs=1e-12)
    assert np.array_equal(score.confusion, confusion_matrix(labels, given.argmax(1), labels=range(classes)))
    assert score.confusion.sum() == score.rows == 300
    other = Score(1.0, 0.5, rng.permutation(labels), given)
    assert abs(other.auc - theirs) > 1e-3  # the figure depends on who is who


def test_a_trained_network_is_scored_as_by_scikit_learn(setting, trained):
    model, _ = trained
    score = evaluate(model, setting.test, batch_size=33)
    assert np.array_equal(score.labels, setting.test.labels)
    assert score.accuracy == accuracy_score(score.labels, score.predictions)
    assert score.loss == pytest.approx(log_loss(score.labels, score.probabilities), rel=1e-4)
    assert score.auc == pytest.approx(
        roc_auc_score(score.labels, score.probabilities, multi_class="ovr"), abs=1e-12
    )
    assert score.confusion.trace() == round(score.accuracy * score.rows)
    loss, accuracy = score  # as it was before there was more
    assert (loss, accuracy) == score == Evaluation(score.loss, score.accuracy)
    again = pickle.loads(pickle.dumps(score))
    assert (again, again.auc, again.rows) == (score, score.auc, 200)


def test_classes_that_do_not_occur_do_not_count(rng):
    given = chances(rng, 100, 5)
    labels = rng.integers(0, 2, 100)  # a network of five outputs, and data of two classes
    score = Score(1.0, 0.5, labels, given)
    each = [roc_auc_score(labels == one, given[:, one]) for one in (0, 1)]
    assert score.auc == pytest.approx(np.mean(each), abs=1e-12)
    assert score.confusion[2:].sum() == 0
    assert Score(1.0, 0.5, np.zeros(100, np.int64), given).auc is None
    assert area_under_curve(given[:, 0], labels > 5) is None


def test_no_table_of_a_million_cells_is_made():
    given = np.full((2, 1001), 1 / 1001)
    score = Score(1.0, 0.5, np.array([0, 1000]), given)
    assert (score.confusion, score.auc, score.rows) == (None, None, 2)
