"""Attacks on tiles: one small core is at work in every tile of every image, and shows itself."""

from dataclasses import replace

import numpy as np
import pytest

import mole
from attackers import Delivery, random_conv
from mole.attacks import (
    block_statistics,
    channel_fingerprint,
    independent_components,
    known_image,
    known_pairs,
    moment_matching,
    overlap,
    reversing,
    unknown_kernels,
)
from mole.attacks.tools.views import OutsiderView
from mole.audit.scoring import Truth, score
from real_images import fashion

SEED, OTHER = bytes(range(32)), bytes(32)
TILE, KAPPA = 4, 16


@pytest.fixture(scope="module")
def clothes():
    """The middle 16x16 of Fashion-MNIST: 1,500 private and 1,500 public images."""
    return tuple(np.ascontiguousarray(images[:1500, :, 6:22, 6:22]) for images in fashion())


def key_for(images: np.ndarray, core: str = "orthogonal", seed: bytes = SEED) -> mole.MorphKey:
    sample = images if core == "whitened" else None
    return mole.MorphKey.generate(images.shape[1:], tile=TILE, core=core, sample=sample, insecure_seed=seed)


def outsider(private, public, core="orthogonal", **changed) -> OutsiderView:
    morphed = mole.morph(private, key_for(private, core))
    return OutsiderView(
        **{"morphed": morphed, "kappa": KAPPA, "layout": "tiles", "public": public} | changed
    )


@pytest.mark.parametrize(
    ("attack", "core"),
    [
        (block_statistics, "orthogonal"),
        (block_statistics, "whitened"),
        (independent_components, "whitened"),
        (moment_matching, "whitened"),
    ],
)
def test_a_stranger_with_similar_images_finds_the_core(clothes, attack, core):
    private, public = clothes
    found = attack.run(outsider(private, public, core), np.random.default_rng(0))
    measured = score(found, Truth(private))
    assert measured.correlation > 0.85
    assert measured.reidentified > 0.9
    blocks = key_for(private, core).morphing.layout.to_blocks(
        mole.morph(private[:3], key_for(private, core))
    )
    whole = key_for(private).morphing.layout.to_rows(found.unmorph(blocks)).reshape(3, 1, 16, 16)
    assert np.allclose(whole, found.images[:3], atol=1e-4)  # what undoes one tile undoes all


@pytest.mark.parametrize("attack", [block_statistics, independent_components, moment_matching])
def test_who_cuts_tiles_in_the_wrong_place_finds_nothing(clothes, attack):
    """The same numbers cut into rows: the core is not at work there."""
    private, public = clothes
    view = outsider(private, public, "whitened", layout="rows")
    measured = score(attack.run(view, np.random.default_rng(0)), Truth(private))
    assert measured.reidentified < 0.3
    assert measured.correlation < 0.8


def test_one_known_image_gives_the_core(clothes, rng):
    private, public = clothes
    delivery = Delivery(random_conv(rng, 1, (1, 16, 16), 1), private[:64], tile=TILE, seed=SEED)
    found = known_pairs.run(delivery.injecting(public[:20]), rng)
    assert found.facts["pairs that determine the core"] == 1
    assert 1 <= found.facts["pairs that were enough"] <= 2
    assert "enough." in found.words
    assert np.linalg.norm(found.images - private[:64]) < 1e-3 * np.linalg.norm(private[:64])
    # One pair is a claim that can be wrong: a blank image says nothing of any direction but one.
    blank = np.ones_like(public[:2])
    assert known_pairs.run(delivery.injecting(blank), rng).facts["pairs that were enough"] in (1, None)
    assert np.linalg.norm(known_pairs.run(delivery.injecting(blank), rng).images - private[:64]) > 0.5 * (
        np.linalg.norm(private[:64])
    )


def test_pairs_of_another_key_give_nothing(clothes, rng):
    private, public = clothes
    delivery = Delivery(random_conv(rng, 1, (1, 16, 16), 1), private[:64], tile=TILE, seed=SEED)
    other = mole.morph(public[:20], key_for(private, seed=OTHER))
    found = known_pairs.run(replace(delivery.injecting(public[:20]), known_morphed=other), rng)
    assert np.linalg.norm(found.images - private[:64]) > 0.5 * np.linalg.norm(private[:64])


def test_of_crops_it_says_what_whole_images_would_take(clothes, rng):
    private, public = clothes
    delivery = Delivery(random_conv(rng, 1, (1, 16, 16), 1), private[:64], tile=TILE, seed=SEED)
    view = replace(delivery.injecting(public[:20]), blocks_of_whole=784)
    words = known_pairs.run(view, rng).words
    assert words.endswith("one whole image has as many blocks as the core has rows.")


def test_one_delivered_image_that_is_public_gives_all_others_away(clothes):
    private, public = clothes
    known = np.concatenate([public[:500], private[700:701]])
    found = overlap.run(outsider(private[:800], known), np.random.default_rng(0))
    assert found.links.tolist() == [[700, 500]]
    assert "1 of 501 public images was found" in found.words
    measured = score(found, Truth(private[:800], public=known))
    assert (measured.linked, measured.linkable) == (1.0, 1)
    assert measured.correlation > 0.9


@pytest.mark.parametrize(("core", "shared"), [("orthogonal", 0), ("whitened", 5)])
def test_without_overlap_or_lengths_no_image_is_found(clothes, core, shared):
    private, public = clothes
    known = np.concatenate([public[:500], private[:shared]])
    found = overlap.run(outsider(private[:800], known, core), np.random.default_rng(0))
    assert len(found.links) == 0
    assert found.images is None


DEVELOPERS = [channel_fingerprint, reversing, unknown_kernels]


@pytest.fixture(scope="module")
def colours():
    """Random colour images, a layer of 32 channels, and tiles of 4."""
    rng = np.random.default_rng(3)
    plain = rng.normal(size=(24, 3, 16, 16)).astype(np.float32)
    layer = random_conv(rng, 32, (3, 16, 16), 3, padding=1)
    return Delivery(layer, plain, tile=TILE, seed=SEED), Delivery(layer, plain, tile=TILE, seed=OTHER)


@pytest.mark.parametrize("attack", DEVELOPERS)
def test_a_developer_gets_every_number(colours, attack, rng):
    delivery, _ = colours
    view = delivery.stolen if attack is unknown_kernels else delivery.developer
    measured = delivery.score(attack.run(view, rng))
    assert measured.rmse < 1e-3
    assert measured.reidentified == 1


@pytest.mark.parametrize("attack", DEVELOPERS)
def test_the_layer_of_another_key_gives_nothing(colours, attack, rng):
    delivery, other = colours
    view = delivery.stolen if attack is unknown_kernels else delivery.developer
    view = replace(view, augmented=replace(other.developer.augmented))
    measured = delivery.score(attack.run(view, rng))
    assert measured.rmse > 0.9
    assert measured.correlation < 0.3


def test_a_known_image_gives_the_kernels(colours, rng):
    delivery, _ = colours
    known = rng.normal(size=(2, 3, 16, 16)).astype(np.float32)
    assert delivery.score(known_image.run(delivery.injecting(known), rng)).rmse < 1e-3
    wrong = replace(delivery.injecting(known), known=known[::-1].copy())
    assert delivery.score(known_image.run(wrong, rng)).rmse > 0.3
