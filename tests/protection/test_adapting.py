"""A head whose direction noise has bent is put right by clean rows, and one that is right is left alone."""

import numpy as np
import pytest

from mole.errors import ParameterError
from mole.protection.adapting import MOST_NUMBERS, adapted
from mole.protection.calibration import calibration
from mole.protection.head import Head, softmax

SIZE = 20


def right_head(rng, classes: int, scale: float = 8.0) -> Head:
    return Head(scale * rng.normal(size=(classes, SIZE)), rng.normal(size=classes))


def drawn(head: Head, rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1, and labels as likely as a head says."""
    rows = rng.normal(size=(count, SIZE))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.array([rng.choice(head.classes, p=one) for one in head.probabilities(rows)])


def accuracy(head: Head, rows, labels) -> float:
    return float((head.scores(rows).argmax(axis=1) == labels).mean())


def bent(head: Head, rng, by: float) -> Head:
    return Head(head.weight + by * rng.normal(size=head.weight.shape), head.intercept)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_bent_head_is_put_right_where_calibration_cannot(rng, classes):
    right = right_head(rng, classes)
    wrong = bent(right, rng, 12.0)
    own, rest = drawn(right, rng, 600), drawn(right, rng, 4_000)
    found = adapted(wrong, *own)
    calibrated = calibration(wrong.scores(own[0]), own[1]).apply(wrong)
    assert found is not None
    assert accuracy(found, *rest) > accuracy(calibrated, *rest) + 0.05
    assert accuracy(found, *rest) > accuracy(right, *rest) - 0.05


def test_what_a_head_knows_is_worth_something_where_rows_are_few(rng):
    """From 40 rows a head that is nearly right gets further than one that knew nothing."""
    gains = []
    for _ in range(5):
        right = right_head(rng, 2)
        own, rest = drawn(right, rng, 40), drawn(right, rng, 2_000)
        nothing, nearly = Head(np.zeros((2, SIZE)), np.zeros(2)), bent(right, rng, 2.0)
        begun, anew = (adapted(one, *own) or one for one in (nearly, nothing))
        gains.append(accuracy(begun, *rest) - accuracy(anew, *rest))
    assert np.mean(gains) > 0.05


def test_a_head_that_is_right_is_left_alone(rng):
    right = right_head(rng, 3)
    assert all(adapted(right, *drawn(right, rng, 300)) is None for _ in range(5))


def test_labels_that_mean_nothing_correct_nothing(rng):
    head = right_head(rng, 2)
    rows, _ = drawn(head, rng, 400)
    assert adapted(head, rows, rng.integers(0, 2, 400)) is None


def test_the_order_of_rows_does_not_matter_even_where_labels_go_round(rng):
    """Every fifth row is held out: with five classes in turn that must not be a whole class."""
    right = right_head(rng, 5)
    wrong = bent(right, rng, 12.0)
    rows, labels = drawn(right, rng, 2_000)
    fewest = np.bincount(labels).min()
    in_turn = np.stack([np.flatnonzero(labels == name)[:fewest] for name in range(5)], axis=1).ravel()
    assert labels[in_turn][:10].tolist() == [0, 1, 2, 3, 4] * 2
    found = adapted(wrong, rows[in_turn], labels[in_turn])
    assert found is not None
    assert accuracy(found, *drawn(right, rng, 2_000)) > accuracy(right, rows, labels) - 0.05


def test_a_class_that_is_seen_once_cannot_be_held_out(rng):
    rows, _ = drawn(right_head(rng, 2), rng, 40)
    assert adapted(right_head(rng, 2), rows, np.arange(40) // 39) is None


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_it_does_not_depend_on_the_length_of_rows(rng, scale):
    right = right_head(rng, 2)
    wrong = bent(right, rng, 12.0)
    rows, labels = drawn(right, rng, 400)
    one, other = (
        adapted(wrong, rows, labels),
        adapted(Head(wrong.weight / scale, wrong.intercept), scale * rows, labels),
    )
    assert np.allclose(softmax(one.scores(rows)), softmax(other.scores(scale * rows)), atol=1e-4)


def test_rows_of_nothing_are_no_division_by_zero(rng):
    head = right_head(rng, 2)
    assert adapted(head, np.zeros((60, SIZE)), np.arange(60) % 2) is None


def test_a_head_that_is_too_large_is_refused():
    classes = MOST_NUMBERS // SIZE + 1
    head = Head(np.zeros((classes, SIZE)), np.zeros(classes))
    with pytest.raises(ParameterError, match="too large to be adapted: calibrate it alone"):
        adapted(head, np.zeros((50, SIZE)), np.arange(50))


def test_one_class_decides_nothing(rng):
    rows, _ = drawn(right_head(rng, 2), rng, 40)
    with pytest.raises(ParameterError, match="two classes or more"):
        adapted(right_head(rng, 2), rows, np.zeros(40, np.int64))
