"""Attacks on protected rows: as good as theory says on made-up features, and blind where there is noise."""

from dataclasses import replace
from math import erf, sqrt

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from mole.attacks import delivered_or_not, nearest_features, noisy_inversion, property_inference
from mole.attacks.delivered_or_not import among_all, which_of_two
from mole.attacks.nearest_features import likeliest
from mole.attacks.tools import trained_decoder
from mole.attacks.tools.linear_on_noise import LinearOnNoise
from mole.attacks.tools.protected_view import ProtectedView
from mole.attacks.tools.views import MissingInputError, NotApplicableError
from mole.errors import MissingExtraError, ShapeError
from mole.protection import Certificate
from mole.protection.known_channel import KnownChannel


def gaussian(sigma, features=6):
    return KnownChannel(Certificate(features, 1.0, sigma))


def view(rng, sigma, count=400, features=6, **more):
    """Rows of made-up features of length 1, and the features."""
    clean = rng.normal(size=(count, features))
    clean /= np.linalg.norm(clean, axis=1, keepdims=True)
    rows = clean + sigma * rng.normal(size=clean.shape)
    return ProtectedView(rows=rows, channel=gaussian(sigma, features), **more), clean


def area(inside, outside):
    return float((inside[:, None] > outside).mean())


def test_the_nearest_is_what_comparing_all_distances_gives(rng):
    seen, clean = view(rng, 0.5)
    choices = rng.integers(len(clean), size=(len(clean), 7))
    apart = np.linalg.norm(seen.rows[:, None] - clean[choices], axis=2)
    assert (likeliest(seen.rows, clean, seen.channel, choices) == apart.argmin(axis=1)).all()


def test_whoever_knows_labels_picks_among_fewer(rng):
    seen, clean = view(rng, 0.8)
    labels = rng.integers(10, size=len(clean))
    choices = np.tile(np.arange(len(clean)), (len(clean), 1))
    seen = replace(
        seen, candidates=clean, lists={len(clean): choices}, row_labels=labels, candidate_labels=labels
    )
    found = nearest_features.run(seen, rng)
    (picked,), (by_label,) = found.picked.values(), found.picked_by_label.values()
    assert (labels[by_label] == labels).all()
    assert (by_label == np.arange(len(clean))).mean() > 2 * (picked == np.arange(len(clean))).mean()
    assert nearest_features.run(replace(seen, row_labels=None), rng).picked_by_label is None


def test_of_two_candidates_the_right_one_is_picked_as_often_as_theory_says(rng):
    """Two points that are 2 C apart: Phi(C / sigma) of the time."""
    clean = np.array([[1.0, 0.0], [-1.0, 0.0]])
    which = rng.integers(2, size=20_000)
    rows = clean[which] + 1.5 * rng.normal(size=(len(which), 2))
    found = likeliest(rows, clean, gaussian(1.5, 2))
    expected = (1 + erf(1 / 1.5 / sqrt(2))) / 2
    assert (found == which).mean() == pytest.approx(expected, abs=0.015)


def test_which_of_two_is_the_ratio_of_likelihoods(rng):
    seen, clean = view(rng, 0.7)
    pairs = clean.reshape(-1, 2, clean.shape[1])
    logs = [
        norm.logpdf(seen.rows[:200], pairs[:, side], 0.7).sum(axis=1) for side in (0, 1)
    ]  # fmt: skip
    assert np.allclose(which_of_two(seen.rows[:200], pairs, seen.channel), logs[0] - logs[1])


def test_members_are_told_where_noise_is_small_and_not_where_it_is_large(rng):
    for sigma, low, high in ((0.02, 0.99, 1.0), (20.0, 0.4, 0.6)):
        seen, clean = view(rng, sigma)
        _, strangers = view(rng, sigma)
        told = among_all(seen.rows, np.concatenate([clean, strangers]), seen.channel)
        assert low <= area(told[: len(clean)], told[len(clean) :]) <= high


def test_among_all_is_the_mean_ratio_of_likelihoods(rng):
    seen, clean = view(rng, 0.7, count=300)
    general = multivariate_normal(seen.rows.mean(axis=0), np.cov(seen.rows.T, bias=True))
    own = [norm.pdf(seen.rows, one, 0.7).prod(axis=1) for one in clean[:20]]
    wanted = np.log(np.mean(own / general.pdf(seen.rows), axis=1))
    assert np.allclose(among_all(seen.rows, clean[:20], seen.channel), wanted)


def test_very_long_rows_are_compared_too(rng):
    seen, clean = view(rng, 0.02, count=40, features=delivered_or_not.WIDEST + 1)
    told = among_all(seen.rows[:20], clean, seen.channel)
    assert area(told[:20], told[20:]) == 1


@pytest.mark.parametrize("count", [40, 5])
def test_least_squares_over_all_noise_are_those_over_much_of_it(rng, count):
    clean, wanted = rng.normal(size=(count, 8)), rng.normal(size=(count, 2))
    linear = LinearOnNoise.fit(clean, wanted, sigma=0.6)
    many = np.tile(clean - clean.mean(axis=0), (20_000 // count, 1))
    noisy = many + 0.6 * rng.normal(size=many.shape)
    target = np.tile(wanted - wanted.mean(axis=0), (20_000 // count, 1))
    drawn = np.linalg.lstsq(noisy, target, rcond=None)[0]
    assert np.abs(linear.weights - drawn).max() < 0.03
    assert np.allclose(linear(clean.mean(axis=0)[None]), wanted.mean(axis=0))


def test_a_property_is_read_off_where_noise_allows_it(rng):
    _, public = view(rng, 1.0)
    for sigma, low, high in ((0.05, 0.97, 1.0), (30.0, 0.4, 0.6)):
        seen, clean = view(
            rng, sigma, public=np.zeros((400, 1, 2, 2)), public_features=public,
            public_has={"left": public[:, 0] > 0, "all": np.ones(400, bool)},
        )  # fmt: skip
        finding = property_inference.run(seen, rng)
        assert list(finding.has) == ["left"]  # of what is true of all there is nothing to tell
        has = clean[:, 0] > 0
        assert low <= area(finding.has["left"][has], finding.has["left"][~has]) <= high


@pytest.fixture
def images(rng):
    """Images that are a linear function of features, and a little more."""
    basis = rng.normal(size=(6, 64))

    def drawn(clean):
        return (clean @ basis + 0.05 * rng.normal(size=(len(clean), 64))).reshape(-1, 1, 8, 8)

    return drawn


@pytest.mark.parametrize("with_torch", [True, False])
def test_images_are_rebuilt_where_noise_allows_it_and_else_the_mean_is(
    rng, images, monkeypatch, with_torch
):
    monkeypatch.setattr(trained_decoder, "MOST_STEPS", 5)
    if not with_torch:

        def no_torch():
            raise MissingExtraError("a learned decoder needs PyTorch", "torch")

        monkeypatch.setattr(trained_decoder, "_torch", no_torch)
    _, public = view(rng, 1.0)
    for sigma, low, high in ((0.01, 0.0, 0.2), (100.0, 0.9, 1.2)):
        seen, clean = view(rng, sigma, public=images(public), public_features=public, rebuilt=50)
        finding = noisy_inversion.run(seen, rng)
        wanted = images(clean)[:50]
        assert finding.images.shape == wanted.shape
        assert low <= np.sqrt(np.square(finding.images - wanted).mean()) / wanted.std() <= high
        assert ("error of a network" in finding.facts) == with_torch
        assert ("without PyTorch no network was tried" in finding.words) != with_torch


def test_what_is_missing_is_named(rng):
    seen, _ = view(rng, 1.0)
    for attack in (nearest_features, delivered_or_not, noisy_inversion, property_inference):
        with pytest.raises(MissingInputError, match=r"candidate|ask|public images"):
            attack.run(seen, rng)
    alike = ProtectedView(
        rows=seen.rows, channel=seen.channel, public=np.zeros((64, 4)), public_features=np.zeros((64, 6)),
        public_has={"left": np.zeros(64, bool)},
    )  # fmt: skip
    with pytest.raises(NotApplicableError, match="alike"):
        property_inference.run(alike, rng)
    with pytest.raises(ShapeError, match="asked have 3 numbers, and rows have 6"):
        ProtectedView(rows=seen.rows, channel=seen.channel, asked=np.zeros((2, 3)))


def test_no_way_leads_from_a_view_to_something_that_can_be_changed(rng):
    seen, clean = view(rng, 1.0, candidates=rng.normal(size=(3, 6)))
    with pytest.raises(ValueError, match="read-only"):
        seen.candidates[0] = 0
    assert clean.flags.writeable
