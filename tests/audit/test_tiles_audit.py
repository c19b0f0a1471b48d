"""The audit of deliveries in tiles: attacks, verdicts, pictures and what the page says in plain words."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import mole
from command import call
from light_passphrases import save_lightly
from mole.attacks import (
    block_statistics,
    channel_fingerprint,
    known_pairs,
    linkage,
    moment_matching,
    overlap,
    unknown_kernels,
)
from mole.attacks.tools.attack import Attacker
from mole.audit.crop import Crop, split_crops
from mole.audit.from_delivery import subject_of_delivery
from mole.audit.from_elsewhere import with_other, with_public
from mole.audit.from_setting import subject_of_setting
from mole.audit.levels import Level
from mole.audit.page import render
from mole.audit.run import audit_subject
from mole.audit.tile_words import NOT_TRIED
from mole.errors import ParameterError, UnsupportedLayerError
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.scheme.convolution import features_of
from mole.scheme.geometry import LayerGeometry
from mole.sources.bundled import fashion_mnist
from mole.sources.opening import open_source

LOOK = mole.Normalisation((0.286,), (0.353,))
ATTACKS = [
    one.ATTACK
    for one in (linkage, overlap, block_statistics, unknown_kernels, channel_fingerprint, known_pairs)
]


def layer_for(side: int) -> mole.FirstLayer:
    weight = np.random.default_rng(5).normal(size=(16, 1, 3, 3)).astype(np.float32)
    return mole.FirstLayer.conv(weight, None, input_shape=(1, side, side), padding=1, normalisation=LOOK)


def delivered(folder, images, tile: int, count: int, *, seed: bytes = bytes(32)):
    """A delivery of some images in tiles, and what its provider knows; as many others are public."""
    known = fashion_mnist()
    made = {kind: images(known[f"x_{kind}"][:count]) for kind in ("private", "public")}
    for kind, pixels in made.items():
        np.savez(folder / f"{kind}.npz", x_train=pixels, y_train=known[f"y_{kind}"][:count])
    layer = layer_for(made["private"].shape[1])
    key = mole.MorphKey.generate(layer.input_shape, tile=tile, insecure_seed=seed)
    deliver(str(folder / "private.npz"), layer, key, folder / "delivery")
    return Delivery.open(folder / "delivery"), {"key": key, "layer": layer}


def twice(images: np.ndarray) -> np.ndarray:
    """Each pixel as three by three: 84x84, too large to be attacked whole."""
    return images.repeat(3, axis=1).repeat(3, axis=2)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    delivery, known = delivered(folder, lambda images: images, 4, 1200)
    subject = subject_of_delivery(delivery, **known, truth=open_source(str(folder / "private.npz")))
    subject = with_public(subject, delivery.manifest, open_source(str(folder / "public.npz")))
    return folder, delivery, known, subject


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    delivery, known = delivered(folder, twice, 4, 400)
    subject = subject_of_delivery(delivery, **known, truth=open_source(str(folder / "private.npz")))
    subject = with_public(subject, delivery.manifest, open_source(str(folder / "public.npz")))
    return folder, delivery, known, subject


@pytest.fixture(scope="module")
def small_report(small):
    return audit_subject(small[-1], attacks=ATTACKS)


@pytest.fixture(scope="module")
def large_report(large):
    """Without algebra, which takes long on this many elements and does not care about crops."""
    attacks = [one for one in ATTACKS if one.attacker in (Attacker.OUTSIDER, Attacker.INJECTOR)]
    return audit_subject(large[-1], attacks=attacks)


def test_nobody_is_kept_out(small_report):
    levels = {verdict.attacker: verdict.level for verdict in small_report.verdicts}
    assert levels == dict.fromkeys(Attacker, Level.BROKEN)


@pytest.mark.parametrize("which", ["small_report", "large_report"])
def test_a_stranger_breaks_them_and_the_advice_is_not_about_kappa(request, which):
    report = request.getfixturevalue(which)
    outsider = next(verdict for verdict in report.verdicts if verdict.attacker == Attacker.OUTSIDER)
    assert outsider.level == Level.BROKEN
    assert "Statistics of blocks" in outsider.sentence
    assert "blocks of rows with kappa = 1 where images are small enough" in outsider.advice
    assert "seal the delivery" in outsider.advice
    advice = " ".join(found.advice for found in report.attacks)
    assert "Use kappa = 1" not in advice
    assert "whitened core with kappa = 1" not in advice
    assert report.warnings == ()


def test_the_page_says_what_tiles_cost(small, small_report):
    told = " ".join(small_report.remarks)
    assert "one core of side 16 morphs all 49 tiles of every image" in told
    assert "1,200 images show the same small matrix at work 58,800 times" in told
    assert "One image has as many tiles as the core has rows" in told
    assert "Here one image was enough." in told or "images were enough." in told
    public = f"{len(small[-1].public):,} similar images from elsewhere"
    assert f"only the morphed files, and {public}, rebuilt images here" in told
    assert "among 256 (Statistics of blocks)" in told
    assert "Seal such a delivery" in told
    assert "Attacks were run on a part" not in told
    page = render(small_report)
    for remark in small_report.remarks:
        assert remark in page
    assert small_report.subject["tiles"] == "of side 4, 49 in each image, all morphed by one core"
    sealed = audit_subject(replace(small[-1], sealed=True), attacks=[linkage.ATTACK])
    assert "Keep such a delivery sealed" in sealed.remarks[-1]
    assert "seal" not in next(iter(sealed.verdicts)).advice


def test_without_public_images_the_page_asks_for_them(small):
    report = audit_subject(replace(small[-1], public=None, public_labels=None), attacks=[linkage.ATTACK])
    assert NOT_TRIED in report.remarks


def test_costs_are_those_of_whole_images_in_tiles(large_report):
    costs = {cost.what: cost for cost in large_report.costs}
    assert costs["elements of the augmented layer"].counted == f"{16 * 16 * 16 * 9:,}"
    assert costs["elements of the augmented layer"].measured == "147.5 kB"
    extra = 16 * 16 * 16 * 9 * 441 - 16 * 84 * 84 * 9
    assert costs["developer's additional multiplications for an image"].counted == f"{extra:,}"


def test_large_images_are_attacked_in_the_middle_and_shown_whole(large, large_report):
    subject = large[-1]
    assert subject.input_shape == (1, 64, 64)
    assert len(subject.further) == 4 * len(subject.morphed) == 1600
    part = "the middle 64x64 pixels, 16x16 of its 21x21 tiles"
    assert large_report.subject["attacked part of each image"] == part
    assert any(part in remark for remark in large_report.remarks)
    found = next(one for one in large_report.attacks if one.attack.name == "block-statistics")
    whole, *crops = found.pictures
    assert [picture.caption for picture in whole] == [
        "Original image 1, whole", "Morphed image 1, whole", "What the attacker rebuilds of image 1, whole",
    ]  # fmt: skip
    original, morphed, rebuilt = (
        np.asarray(Image.open(io.BytesIO(picture.png)), float).reshape(-1) for picture in whole
    )
    assert original.size % 84**2 == 0
    assert np.corrcoef(original, rebuilt)[0, 1] > 0.95
    assert abs(np.corrcoef(original, morphed)[0, 1]) < 0.5
    assert len(crops) == 3
    words = next(one for one in large_report.attacks if one.attack.name == "known-pairs").words
    assert "one whole image has as many blocks as the core has rows" in words


def test_a_crop_has_the_truth_of_its_place(large):
    _, _, known, subject = large
    layer = known["layer"]
    order = known["key"].channel_order(layer.channels)
    expected = features_of(subject.layer, subject.truth.plain[:4])[:, order]
    assert np.allclose(subject.augmented.features(subject.morphed[:4]), expected, atol=1e-3)
    assert np.allclose(subject.crop(subject.whole.truth.plain), subject.truth.plain[:1], atol=1e-3)


def test_another_delivery_is_cropped_alike(large, tmp_path):
    _, delivery, known, subject = large
    other, _ = delivered(tmp_path, twice, 4, 40)
    linked = with_other(subject, delivery, other, known["key"])
    assert linked.elsewhere.shape == (40, 1, 64, 64)
    assert linked.truth.elsewhere.shape == (40, 1, 64, 64)


def test_statistics_use_crops_from_all_over(large):
    """With the middles alone, an attack has too little to go by."""
    subject = large[-1]
    few = replace(subject, morphed=subject.morphed[:120], labels=None, further=None)
    attacks = [moment_matching.ATTACK]
    (alone,) = audit_subject(few, attacks=attacks).attacks
    assert "too few" in alone.words
    more = replace(few, further=subject.further[: 120 * (len(subject.further) // len(subject.morphed))])
    (found,) = audit_subject(more, attacks=attacks).attacks
    assert found.score.reidentified > 0.5


@pytest.mark.parametrize(
    ("shape", "kappa", "kernel", "tiles"),
    [((3, 224, 224), 784, 3, (4, 4)), ((3, 224, 224), 49, 3, (1, 1)), ((3, 224, 224), 3136, 21, (9, 9)),
     ((3, 224, 224), 784, 40, (5, 5)), ((1, 8, 4096), 2048, 3, (2, 128)),
     ((1, 64, 64, 64), 4096, 3, (4, 4, 4))
     ],
)  # fmt: skip
def test_as_many_tiles_as_attacks_take_and_a_kernel_needs(shape, kappa, kernel, tiles):
    axes = len(shape) - 1
    geometry = LayerGeometry((kernel,) * axes, (1,) * axes, ((1, 1),) * axes, (1,) * axes)
    assert Crop.of("tiles", shape, kappa, geometry).tiles == tiles


def test_crops_from_all_over_are_tiles_of_their_image(rng):
    crop = Crop.of("tiles", (1, 96, 80), 96 * 80 // 16)
    samples = rng.normal(size=(3, 1, 96, 80))
    middle, further = split_crops(crop.several(samples, 1))
    assert np.array_equal(middle, crop(samples))
    assert np.array_equal(further, samples[:, :, :64, :64])
    assert crop.further(100_000) == 0
    assert crop.further(1) == 4
    assert np.array_equal(crop.several(samples, 4)[:, 4], samples[:, :, 32:, 16:])


def test_a_setting_in_tiles():
    subject = subject_of_setting(layer_for(32), tile=8)
    assert (subject.layout, subject.kappa, subject.crop) == ("tiles", 16, None)
    (found,) = audit_subject(subject, attacks=[block_statistics.ATTACK]).attacks
    assert found.score.reidentified > 0.9
    with pytest.raises(ParameterError, match="leave out kappa"):
        subject_of_setting(layer_for(32), tile=8, kappa=2)
    with pytest.raises(ParameterError, match="cannot be cut into tiles of side 5"):
        subject_of_setting(layer_for(32), tile=5)
    strided = replace(layer_for(32), stride=(3, 3))
    with pytest.raises(UnsupportedLayerError, match="does not divide tiles of side 8"):
        subject_of_setting(strided, tile=8)


def test_the_command_audits_a_delivery_in_tiles(small, tmp_path):
    folder, _, known, _ = small
    save_lightly(known["key"], folder / "provider.key", "a long passphrase")
    mole.save(known["layer"], folder / "layer.safetensors")
    (tmp_path / "passphrase").write_text("a long passphrase\n")
    out = tmp_path / "audit"
    done = call(
        "audit", folder / "delivery", "--key", folder / "provider.key", "--passphrase-file",
        tmp_path / "passphrase", "--layer", folder / "layer.safetensors", "--public", folder / "public.npz",
        "--budget", "2", "--no-appendix", "--out", out, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads((out / "audit.json").read_text())
    assert told["remarks"][0].startswith("Tiles hide images from the eye only")
    assert "Tiles hide images from the eye only" in (out / "audit.html").read_text()


def test_a_layout_that_nobody_knows_is_no_crash(small):
    """Rows can be compared all the same; what has to know where blocks lie says so."""
    subject = replace(small[-1], layout="spirals", augmented=None)
    report = audit_subject(subject, attacks=[linkage.ATTACK, block_statistics.ATTACK])
    assert report.remarks == ()
    assert [found.status.value for found in report.attacks] == ["partly succeeded", "not applicable"]
