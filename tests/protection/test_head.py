"""A head that is fitted to noisy features and used on clean ones, against the best there can be."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mole.errors import ParameterError, ShapeError
from mole.protection.head import Head, fit_noisy_head
from mole.protection.spikes import without_noise

SIZE, SHARES = 16, np.array([0.7, 0.2, 0.1])
SIGMA = 0.7


class Classes:
    """Gaussian classes of one covariance, and the best classifier of them."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.means = 0.25 * self.rng.normal(size=(len(SHARES), SIZE)) + 0.5
        turned = np.linalg.qr(self.rng.normal(size=(SIZE, SIZE)))[0]
        self.covariance = (turned * np.geomspace(0.6, 0.05, SIZE)) @ turned.T
        weight = np.linalg.solve(self.covariance, self.means.T).T
        self.best = Head(weight, np.log(SHARES) - (weight * self.means).sum(axis=1) / 2)

    def draw(self, count: int, sigma: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        labels = self.rng.choice(len(SHARES), count, p=SHARES)
        spread = self.rng.normal(size=(count, SIZE)) @ np.linalg.cholesky(self.covariance).T
        return self.means[labels] + spread + sigma * self.rng.normal(size=(count, SIZE)), labels


@pytest.fixture(scope="module")
def classes():
    return Classes()


@pytest.fixture(scope="module")
def clean(classes):
    return classes.draw(20_000)


def loss(head: Head, rows, labels) -> float:
    return float(-np.log(head.probabilities(rows)[np.arange(len(labels)), labels]).mean())


def accuracy(head: Head, rows, labels) -> float:
    return float((head.scores(rows).argmax(axis=1) == labels).mean())


def naive(rows, labels) -> Head:
    """What one would do without thinking of the noise."""
    fitted = LogisticRegression(C=1e6, max_iter=500).fit(rows, labels)
    return Head(fitted.coef_, fitted.intercept_)


def test_it_comes_near_the_best_classifier_and_an_ordinary_one_does_not(classes, clean):
    noisy = classes.draw(20_000, SIGMA)
    best, ours = classes.best, fit_noisy_head(*noisy, SIGMA, len(SHARES))
    ordinary = naive(*noisy)
    assert loss(best, *clean) < loss(ours, *clean) < loss(best, *clean) + 0.03
    assert accuracy(ours, *clean) > accuracy(best, *clean) - 0.01
    assert loss(ordinary, *clean) > loss(best, *clean) + 0.1
    assert accuracy(ordinary, *clean) < accuracy(best, *clean) - 0.03


def test_without_noise_an_ordinary_one_is_as_good(classes, clean):
    """The twin: the difference above is the noise's, and not that of another method."""
    rows = classes.draw(20_000)
    assert abs(loss(naive(*rows), *clean) - loss(fit_noisy_head(*rows, 0.0, 3), *clean)) < 0.02


def test_a_wrong_size_of_noise_shows(classes, clean):
    noisy = classes.draw(20_000, SIGMA)
    losses = [loss(fit_noisy_head(*noisy, sigma, 3), *clean) for sigma in (0.0, SIGMA)]
    assert losses[0] > losses[1] + 0.1


def test_rare_classes_get_their_share_on_clean_features(classes, clean):
    """Noise makes an ordinary classifier prefer the most frequent class."""
    noisy = classes.draw(20_000, SIGMA)
    shares = {
        name: head.probabilities(clean[0]).mean(axis=0)
        for name, head in (("ours", fit_noisy_head(*noisy, SIGMA, 3)), ("ordinary", naive(*noisy)))
    }
    answers = np.bincount(naive(*noisy).scores(clean[0]).argmax(axis=1), minlength=3) / len(clean[0])
    assert np.abs(shares["ours"] - SHARES).max() < 0.02
    assert answers[0] > SHARES[0] + 0.05


def test_with_few_rows_and_much_noise_it_is_not_sure_of_itself(classes, clean):
    """Nothing can be learned from forty rows, and the head says so: it is hardly worse than the shares."""
    losses = [loss(fit_noisy_head(*classes.draw(40, 4.0), 4.0, 3), *clean) for _ in range(10)]
    known = -(SHARES * np.log(SHARES)).sum()
    assert np.median(losses) < known + 0.3


def test_it_is_the_same_in_other_coordinates(classes, clean):
    """What a developer learns from morphed rows is what it would learn from plain ones."""
    rows, labels = classes.draw(2_000, SIGMA)
    turn = np.linalg.qr(classes.rng.normal(size=(SIZE, SIZE)))[0]
    plain, turned = (fit_noisy_head(some, labels, SIGMA, 3) for some in (rows, rows @ turn))
    assert np.allclose(plain.scores(clean[0]), turned.scores(clean[0] @ turn), atol=1e-6)


def test_a_class_without_rows_is_never_chosen(classes, clean):
    rows, labels = classes.draw(2_000, SIGMA)
    head = fit_noisy_head(rows, 2 * labels, SIGMA, 6)
    assert head.classes == 6
    assert np.isfinite(head.weight).all()
    assert np.isfinite(head.intercept).all()
    assert set(head.scores(clean[0]).argmax(axis=1)) <= {0, 2, 4}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"labels": np.zeros(40, int)}, ParameterError, "40 rows of 1 classes"),
        ({"labels": np.arange(40)}, ParameterError, "from 0 to 2"),
        ({"labels": np.arange(39) % 3}, ShapeError, "do not go together"),
        ({"sigma": -1.0}, ParameterError, "at least 0"),
        ({"features": np.full((40, 4), np.nan)}, ParameterError, "NaN"),
    ],
)
def test_what_cannot_be_fitted_is_told(change, error, words):
    given = {"features": np.ones((40, 4)), "labels": np.arange(40) % 3, "sigma": 1.0, "classes": 3}
    with pytest.raises(error, match=words):
        fit_noisy_head(**{**given, **change})


def test_variances_of_pure_noise_become_next_to_nothing(rng):
    rows = rng.normal(size=(1_000, 100))
    clean = without_noise(np.linalg.eigvalsh(rows.T @ rows / 1_000), 1.0, 1_000)
    assert clean.max() < 0.1  # and the largest is 1.7 with the noise


def test_a_variance_that_stands_out_is_found(rng):
    rows = rng.normal(size=(1_000, 100))
    rows[:, 0] *= np.sqrt(5.0)
    clean = without_noise(np.linalg.eigvalsh(rows.T @ rows / 1_000), 1.0, 1_000)
    assert clean[-1] == pytest.approx(4.0, rel=0.15)
    assert clean[:-1].max() < 0.1
