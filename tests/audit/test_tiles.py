"""The audit of tiles that do not fill the images, and of shuffled ones."""

import io

import numpy as np
import pytest
from PIL import Image

import mole
from mole.attacks import (
    channel_fingerprint,
    feature_view,
    known_image,
    known_pairs,
    reversing,
    unknown_kernels,
)
from mole.audit.from_delivery import ORDER_KNOWN, subject_of_delivery
from mole.audit.from_elsewhere import with_other, with_public
from mole.audit.levels import Status
from mole.audit.run import audit_subject
from mole.scheme.convolution import features_of
from mole.sources.opening import open_source

SIDE, ROWS = 14, 330


def smooth(rng: np.random.Generator, count: int, side: int) -> np.ndarray:
    coarse = rng.integers(40, 220, (count, 1, 4, 4)).repeat(4, axis=2).repeat(4, axis=3)
    return (coarse[..., :side, :side] + rng.integers(-20, 20, (count, 1, side, side))).astype(np.uint8)


def made(folder, layer, key, side):
    """A delivery, the images it was made from, and the subject with all that an auditor gives."""
    rng = np.random.default_rng(4)
    for name, count in (("private", ROWS), ("public", 120)):
        np.savez(folder / f"{name}.npz", x_train=smooth(rng, count, side), y_train=np.arange(count) % 2)
    source, public = (open_source(str(folder / f"{name}.npz")) for name in ("private", "public"))
    delivery = mole.deliver(source, layer, key, folder / "d").delivery
    other = mole.deliver(source, layer, key, folder / "other", layer_dtype=None).delivery
    subject = subject_of_delivery(delivery, key=key, layer=layer, truth=source)
    subject = with_public(subject, delivery.manifest, public)
    return delivery, with_other(subject, delivery, other, key)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    weight = np.random.default_rng(0).normal(size=(8, 1, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(
        weight, None, input_shape=(1, SIDE, SIDE), padding=1,
        normalisation=mole.Normalisation((0.5,), (0.25,)),
    )  # fmt: skip
    key = mole.MorphKey.generate(layer.input_shape, tile=8, insecure_seed=bytes(32))
    return made(tmp_path_factory.mktemp("filled"), layer, key, SIDE)


def test_everything_has_the_shape_of_morphed_samples(filled):
    delivery, subject = filled
    assert subject.input_shape == delivery.manifest.input_shape == (1, 16, 16)
    assert subject.layer.output_shape == subject.augmented.output_shape == (8, SIDE, SIDE)
    assert not any("source given" in warning for warning in subject.warnings)
    for samples in (subject.truth.plain, subject.public, subject.candidates, subject.elsewhere):
        assert samples.shape[1:] == (1, 16, 16)
    assert not subject.truth.plain[:, :, SIDE:].any()
    assert subject.truth.images(subject.truth.plain).shape[1:] == (1, SIDE, SIDE)


def test_attacks_are_compared_and_shown_without_the_zeros(filled):
    _, subject = filled
    modules = (unknown_kernels, feature_view, channel_fingerprint, known_image, reversing, known_pairs)
    report = audit_subject(subject, attacks=[module.ATTACK for module in modules])
    found = {tried.attack.name: tried for tried in report.attacks}
    assert {tried.status for tried in report.attacks} == {Status.SUCCEEDED}
    assert all(tried.score.correlation > 0.8 for tried in report.attacks)
    assert found["known-pairs"].score.psnr > 100
    sizes = {
        Image.open(io.BytesIO(picture.png)).size for row in found["known-pairs"].pictures for picture in row
    }
    assert all(min(size) % SIDE == 0 for size in sizes), sizes


def test_shuffled_tiles_are_told_to_the_attackers_and_shown_in_their_places(tmp_path):
    weight = np.random.default_rng(0).normal(size=(16, 1, 4, 4)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(1, 16, 16), stride=4)
    key = mole.MorphKey.generate((1, 16, 16), tile=4, shuffle_tiles=True, insecure_seed=bytes(32))
    _, subject = made(tmp_path, layer, key, 16)
    assert ORDER_KNOWN in subject.warnings
    images = subject.truth.images(subject.truth.plain)
    assert not np.allclose(images, subject.truth.plain)
    assert np.allclose(mole.morph(images, key), subject.morphed[: len(images)], atol=1e-5)
    report = audit_subject(subject, attacks=[known_pairs.ATTACK])
    assert report.attacks[0].score.correlation > 0.99


def test_a_crop_of_filled_images_has_layers_to_match(tmp_path):
    """Large images are attacked in part, and no zeros fill the tiles of a part."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, 1, 97, 97), dtype=np.uint8)
    np.savez(tmp_path / "d.npz", x_train=images, y_train=np.arange(12) % 2)
    weight = rng.normal(size=(4, 1, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(1, 97, 97), padding=1)
    key = mole.MorphKey.generate(layer.input_shape, tile=8, insecure_seed=bytes(32))
    delivery = mole.deliver(tmp_path / "d.npz", layer, key, tmp_path / "d").delivery
    subject = subject_of_delivery(delivery, key=key, layer=layer)
    assert subject.layer.output_shape == subject.augmented.output_shape
    features = features_of(subject.layer, subject.truth.plain, channel_order=key.channel_order(4))
    found = subject.augmented.features(subject.morphed[: len(features)])
    assert np.allclose(found, features, atol=1e-4)
