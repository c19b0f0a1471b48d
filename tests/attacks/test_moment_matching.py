"""Labels and higher moments give a whitened core away, and nothing else than they do."""

from functools import cache

import numpy as np
import pytest

from mole.attacks.moment_matching import ATTACK, FEWEST_ROWS, match_moments
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.blocks import Moments, Whitened, nearest_rotation
from mole.attacks.tools.higher_moments import Directions, find_rotation, leading_space, within
from mole.attacks.tools.views import MissingInputError, NotApplicableError, OutsiderView
from mole.audit.scoring import Truth, score
from mole.errors import ShapeError
from mole.sources.bundled import fashion_mnist
from real_images import fashion, morphed

CHANCE = 5 / 500  # picked out among 500


@cache
def small():
    """Private and public clothes of 7x7 pixels, (3000, 1, 7, 7) each, and their classes."""
    sides = [images.reshape(-1, 1, 7, 4, 7, 4).mean(axis=(3, 5)) for images in fashion()]
    labels = [fashion_mnist()[f"y_{part}"].astype(np.int64) for part in ("private", "public")]
    return (*sides, *labels)


def view(core="whitened", kappa=1, public=None, labels=None, public_labels=None):
    private, usual, *_ = small()
    return OutsiderView(
        morphed=morphed(private, core, kappa), kappa=kappa, public=usual if public is None else public,
        labels=labels, public_labels=public_labels,
    )  # fmt: skip


def picked_out(seen, **options):
    """The share of 500 images that lie nearest to their own original."""
    found = match_moments(seen, np.random.default_rng(0), **options)
    images = seen.to_samples(found.undo(seen.to_blocks(seen.morphed[:500])))
    return score(Finding("", images=images), Truth(small()[0])).reidentified


@pytest.mark.parametrize("core", ["whitened", "gaussian"])
def test_images_are_picked_out_with_labels(core):
    *_, labels, public_labels = small()
    seen = view(core, labels=labels, public_labels=public_labels)
    found = ATTACK.run(seen, np.random.default_rng(0))
    measured = score(found, Truth(small()[0]))
    assert measured.reidentified > 0.35
    assert measured.among == 512
    assert found.facts["classes"] == 10
    assert "3,000 morphed blocks in 10 classes, 49 numbers each" in found.words
    assert score(found, Truth(np.roll(small()[0], 1, axis=0))).reidentified < CHANCE


def test_images_are_picked_out_without_labels():
    """Neither side has them, or only the delivery, which is no help."""
    found = ATTACK.run(view(labels=small()[2]), np.random.default_rng(0))
    assert "without labels" in found.words
    assert score(found, Truth(small()[0])).reidentified > 0.05


def test_labels_that_no_public_image_has_are_left_aside():
    """A hospital's classes are not those of public images: then it goes without."""
    *_, labels, public_labels = small()
    seen = view(labels=labels, public_labels=public_labels + 100)
    found = ATTACK.run(seen, np.random.default_rng(0))
    assert found.facts["classes"] == 0
    assert "without labels" in found.words
    assert score(found, Truth(small()[0])).reidentified > 0.05


def test_labels_alone_say_something_and_shuffled_ones_nothing(rng):
    *_, labels, public_labels = small()
    told = picked_out(view(labels=labels, public_labels=public_labels), labels_alone=True)
    mixed = view(labels=rng.permutation(labels), public_labels=public_labels)
    assert told > 5 * CHANCE
    assert picked_out(mixed, labels_alone=True) < CHANCE


def test_public_images_of_another_kind_say_nothing(rng):
    """The same pixels in another order are no clothes; neither is noise."""
    *_, labels, public_labels = small()
    pixels = rng.permutation(49)
    scrambled = small()[1].reshape(-1, 49)[:, pixels].reshape(-1, 1, 7, 7)
    noise = rng.normal(size=scrambled.shape).astype(np.float32)
    assert picked_out(view(public=scrambled)) < CHANCE
    assert picked_out(view(public=noise, labels=labels, public_labels=public_labels)) < CHANCE


def test_classes_need_not_be_numbered_from_zero_nor_be_there_on_both_sides():
    *_, labels, public_labels = small()
    ours = np.where(labels < 5, 1000 * labels - 3, 11)
    theirs = np.where(public_labels < 5, 1000 * public_labels - 3, 17)
    assert picked_out(view(labels=ours, public_labels=theirs)) > 0.05


def test_several_blocks_are_groups_of_their_own():
    *_, labels, public_labels = small()
    assert picked_out(view(kappa=7, labels=labels, public_labels=public_labels)) > 0.05


def test_a_rotation_is_found_by_moments_of_groups(rng):
    """With plenty of skewed rows the rotation itself comes out; with groups mixed up it does not."""
    side, count = 6, 30_000
    mixing = rng.normal(size=(3, side, side))
    groups = rng.integers(3, size=(2, count))
    rows = [np.einsum("ni,nij->nj", rng.exponential(size=(count, side)), mixing[some]) for some in groups]
    rotation = nearest_rotation(rng.normal(size=(side, side)))
    white = [Whitened.of((some - some.mean(axis=0))[:, np.newaxis]).blocks[:, 0] for some in rows]

    def found(*labels):
        sides = [
            Directions.of(some, told, lengths=2)
            for some, told in zip((white[0], white[1] @ rotation), labels, strict=True)
        ]
        cells = sides[0].common_cells(sides[1])
        moments = [one.moments(cells) for one in sides]
        return find_rotation(*moments, rng, starts=4, steps=100)[0]

    assert found(*groups) == pytest.approx(rotation, abs=0.1)
    assert found(groups[0], rng.permutation(groups[1])) != pytest.approx(rotation, abs=0.1)


def test_the_leading_space_turns_with_the_rows(rng):
    seconds = np.array([np.diag([9.0, -5, 0.1, -0.1, 0])], np.float32)
    rotation = nearest_rotation(rng.normal(size=(5, 5)))
    public = Moments(np.zeros((1, 5)), seconds)
    turned = within(public, rotation)
    ours, theirs = leading_space(public, 2), leading_space(turned, 2)
    assert rotation @ theirs @ theirs.T @ rotation.T == pytest.approx(ours @ ours.T, abs=1e-4)
    assert np.abs(ours[2:]).max() < 1e-6
    assert np.array_equal(leading_space(public, 5), np.eye(5))


def test_it_declines_what_it_cannot_do(rng):
    rows = rng.normal(size=(FEWEST_ROWS, 1, 4, 4)).astype(np.float32)
    wide = np.zeros((FEWEST_ROWS, 1, 64, 64), np.float32)
    with pytest.raises(MissingInputError, match="no public images"):
        ATTACK.run(OutsiderView(morphed=rows, kappa=1), rng)
    for seen, reason in [
        (OutsiderView(morphed=rows[1:], kappa=1, public=rows), "199 images are too few"),
        (OutsiderView(morphed=wide, kappa=1, public=wide), "side 4,096 takes too long"),
    ]:
        with pytest.raises(NotApplicableError, match=reason):
            ATTACK.run(seen, rng)
    with pytest.raises(ShapeError, match="not one label for each sample"):
        OutsiderView(morphed=rows, kappa=1, labels=np.zeros(3, np.int64))
    with pytest.raises(ShapeError, match="not one label for each sample"):
        OutsiderView(morphed=rows, kappa=1, public_labels=np.zeros(3, np.int64))
