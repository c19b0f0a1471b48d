"""The audit of a protected delivery: within its certificate, or broken; clothes through a small front."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

import mole
from browsers import DARK, PHONE, in_a_browser, problems
from fronts import feature_key, feature_layer, write_component_front, write_front
from mole.attacks.tools import trained_decoder
from mole.attacks.tools.attack import Reader
from mole.audit import protected_run, protected_subject
from mole.audit.page import render
from mole.audit.report import Level, Status
from mole.audit.run import audit
from mole.errors import DeliveryError, FileError, MoleWarning, ParameterError, SourceError
from mole.provider import protector
from mole.provider.deliver import deliver
from mole.provider.protect import Protect
from mole.sources.bundled import fashion_mnist
from secrets_kept import DEVELOPER, RECIPIENT

FEATURES, COUNT = 16, 400


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Clothes of 14x14 pixels, private and public, and a front that learnt from the public ones."""
    folder, bundled = tmp_path_factory.mktemp("clothes"), fashion_mnist()
    for part in ("private", "public"):
        pixels = bundled[f"x_{part}"].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).astype(np.uint8)[:COUNT]
        np.savez(folder / f"{part}.npz", x_train=pixels, y_train=bundled[f"y_{part}"][:COUNT])
    write_component_front(folder / "front.onnx", np.load(folder / "public.npz")["x_train"], FEATURES)
    return folder


@pytest.fixture(autouse=True)
def _a_short_training(monkeypatch):
    monkeypatch.setattr(trained_decoder, "MOST_STEPS", 10)


def made(place, out, *, bits=1.0, data="private.npz", **options):
    protect = Protect(place / "front.onnx", bits=bits)
    return deliver(
        place / data, feature_layer(FEATURES), feature_key(FEATURES), out, protect=protect, **options
    ).delivery


def attacked(place, delivery, **options):
    everything = {
        "key": feature_key(FEATURES), "layer": feature_layer(FEATURES), "truth": place / "private.npz",
        "public": place / "public.npz", "front": place / "front.onnx",
    }  # fmt: skip
    return audit(delivery, **everything | options)


@pytest.fixture(scope="module")
def delivery(place, tmp_path_factory):
    return made(place, tmp_path_factory.mktemp("made") / "one")


@pytest.fixture(scope="module")
def report(place, delivery):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained_decoder, "MOST_STEPS", 10)
        return attacked(place, delivery)


def figures(report):
    return {figure.name: figure for found in report.attacks for figure in found.figures}


def test_every_figure_keeps_to_its_bound(report):
    found = figures(report)
    assert [*found] == [
        "Picked out of 10", "Picked out of 100", "Row known (AUC)", "Row known, told at 1 % false alarms",
        "Among all rows (AUC)", "Among all rows, told at 1 % false alarms", "Brighter images first (AUC)",
        "Richer in contrast images first (AUC)", "Fidelity (PSNR)", "Rebuilt nearest to its own of 256",
    ]  # fmt: skip
    for figure in found.values():
        assert not figure.exceeds, figure
        assert figure.measured.low <= figure.measured.value <= figure.measured.high
    assert [name for name, one in found.items() if one.bound is None] == ["Fidelity (PSNR)"]
    assert found["Picked out of 10"].is_better_than_chance  # the test could fail
    assert found["Row known (AUC)"].measured.value > 0.75
    assert not found["Among all rows (AUC)"].is_better_than_chance
    assert 0.35 < found["Among all rows (AUC)"].measured.value < 0.65


def test_verdicts_and_headline_say_what_that_comes_to(report):
    assert [verdict.attacker for verdict in report.verdicts] == [*Reader]
    assert {verdict.level for verdict in report.verdicts} <= {Level.LEAKS, Level.NOTHING_FOUND}
    assert report.headline == (
        "Each row tells 1 bit about its image at most, whoever reads it, and no attack we tried did better "
        "than that allows."
    )
    picked = report.verdicts[0].sentence
    assert picked.startswith("does better than chance, and no better than the certificate allows: picked")
    assert "(by chance 1\u00a0%, allowed " in picked
    assert report.warnings == ()


def test_the_bounds_are_those_of_the_certificate(delivery, report):
    certificate = delivery.manifest.protection.certificates["train"]
    found = figures(report)
    assert found["Picked out of 100"].bound == certificate.identification(100)
    assert found["Row known (AUC)"].bound == certificate.ranked()
    assert found["Row known, told at 1 % false alarms"].bound == certificate.detected(0.01)
    (told,) = report.certificates
    assert (told.split, told.rows, told.is_noisy) == ("train", COUNT, True)
    assert told.bits == pytest.approx(1.0)
    assert (told.of_few, told.of_many) == (
        certificate.identification(1000),
        certificate.identification(10**6),
    )
    assert told.epsilon == pytest.approx(certificate.epsilon(1e-5))


BROKEN = {
    "no noise": lambda clipped, sigma, noise: clipped,
    "the same for all": lambda clipped, sigma, noise: clipped + sigma * noise.normals(clipped.shape[1]),
    "a little too small": lambda clipped, sigma, noise: (
        clipped + 0.85 * sigma * noise.normals(clipped.size).reshape(clipped.shape)
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_noise_that_is_missing_is_told_as_broken(place, tmp_path, monkeypatch, how):
    monkeypatch.setattr(protector, "release", BROKEN[how])
    found = attacked(place, made(place, tmp_path / "out"), public=None)
    assert {verdict.level for verdict in found.verdicts} == {Level.BROKEN}
    assert all("so the implementation is broken" in verdict.sentence for verdict in found.verdicts)
    assert found.headline.startswith("Do not hand this delivery over: attacks get more out of it")
    assert "the implementation is broken" in render(found)
    if how == "no noise":
        assert figures(found)["Picked out of 10"].exceeds
        assert figures(found)["Row known (AUC)"].exceeds
        assert found.attacks[0].status == Status.SUCCEEDED


def test_without_a_front_there_is_the_certificate_and_one_sentence(place, delivery):
    found = attacked(place, delivery, front=None)
    assert [one.bits for one in found.certificates] == [pytest.approx(1.0)]
    assert found.remarks == ("Attacks on a protected delivery need its front: give it to test this.",)
    assert {verdict.level for verdict in found.verdicts} == {Level.UNKNOWN}
    assert (
        found.headline
        == "Each row tells 1 bit about its image at most, whoever reads it. No attack was tried."
    )
    bare = audit(delivery)
    assert bare.remarks[0].startswith(
        "Attacks on a protected delivery need its key, its front and the images"
    )
    assert render(bare).count("ttacks on a protected delivery need its key") == 1
    assert "Attacks were run" not in render(bare)


def test_noise_is_looked_for_without_a_front_too(place, tmp_path, monkeypatch):
    monkeypatch.setattr(protector, "release", BROKEN["no noise"])
    bare = audit(made(place, tmp_path / "out"))
    assert {verdict.level for verdict in bare.verdicts} == {Level.BROKEN}
    assert "the noise is not there" in bare.verdicts[0].sentence
    assert not bare.certificates[0].is_noisy


def test_what_does_not_belong_to_it_is_refused_in_a_sentence(place, delivery, tmp_path):
    other = write_front(tmp_path / "other.onnx")
    with pytest.raises(FileError, match=r"other\.onnx is not the front of this delivery: its SHA-256"):
        attacked(place, delivery, front=other)
    with pytest.raises(DeliveryError, match="was made with key"):
        attacked(place, delivery, key=feature_key(FEATURES, seed=1))
    with pytest.raises(ParameterError, match="not compared with another one"):
        attacked(place, delivery, other=delivery)
    np.savez(tmp_path / "small.npz", x_train=np.zeros((80, 5, 5), np.uint8))
    with pytest.raises(SourceError, match="5x5"):
        attacked(place, delivery, public=tmp_path / "small.npz")
    images = mole.MorphKey.generate((1, 14, 14), insecure_seed=bytes(32))
    layer = mole.FirstLayer.conv(
        np.random.default_rng(0).normal(size=(4, 1, 3, 3)), None, input_shape=(1, 14, 14)
    )
    deliver(place / "private.npz", layer, images, tmp_path / "images")
    with pytest.raises(ParameterError, match="is not protected, and has no front: leave it out"):
        audit(tmp_path / "images", front=place / "front.onnx")


def test_a_source_that_is_not_its_own_is_found_out(place, delivery, tmp_path):
    """Noise hides which image a row is, and not whether all of them are."""
    np.savez(tmp_path / "given.npz", x_train=np.load(place / "private.npz")["x_train"][::-1])
    with pytest.warns(MoleWarning, match="could not be compared with the truth"):
        found = attacked(place, delivery, truth=tmp_path / "given.npz")
    assert {verdict.level for verdict in found.verdicts} == {Level.UNKNOWN}


def test_too_few_rows_to_tell_are_told_of(place, tmp_path):
    arrays = np.load(place / "private.npz")
    np.savez(tmp_path / "few.npz", x_train=arrays["x_train"][:12], y_train=arrays["y_train"][:12])
    few = made(place, tmp_path / "out", data=tmp_path / "few.npz")
    with pytest.warns(MoleWarning, match="too few rows to tell"):
        found = attacked(place, few, truth=tmp_path / "few.npz", public=None)
    assert [*figures(found)] == ["Picked out of 10"]


def test_the_split_whose_rows_tell_most_is_attacked_and_views_are_counted(place, tmp_path):
    arrays = np.load(place / "private.npz")
    np.savez(tmp_path / "split.npz", x_train=arrays["x_train"][:100], x_test=arrays["x_train"][100:300])
    bits = {"train": 4.0, "test": 0.5}
    with pytest.warns(MoleWarning, match="leaves as 2 views"):
        two = made(place, tmp_path / "two", data=tmp_path / "split.npz", bits=bits, views=2)
    found = attacked(place, two, truth=tmp_path / "split.npz", public=None)
    assert "200 of split 'train' were attacked" in found.subject["rows"]
    assert {one.split: round(one.bits, 6) for one in found.certificates} == bits
    assert any("each image has 2 rows" in sentence for sentence in found.unsaid)
    one, both = (figures(found)[f"{name} (AUC)"] for name in ("Row known", "Among all rows"))
    assert one.bound < both.bound < 1
    assert all(not figure.exceeds for figure in figures(found).values())
    assert found.verdicts[0].level == Level.LEAKS  # rows and images were put together rightly


def test_what_it_does_not_say_is_said(place, tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))
    for name in ("one", "two"):
        made(place, tmp_path / name)
    told = " ".join(attacked(place, tmp_path / "two", front=None).unsaid)
    for words in (
        "Bits are an average over images", "Labels leave besides, in train", "Several images of one person",
        "equally likely beforehand", "400 rows",
        "in 2 deliveries under this key so far, no image of this one has given away more than 2 bits",
    ):  # fmt: skip
        assert words in told
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "elsewhere"))
    told = " ".join(attacked(place, tmp_path / "two", front=None).unsaid)
    assert "nothing of this delivery was counted on this machine" in told
    assert not (tmp_path / "elsewhere").exists()  # looking leaves no trace


def test_sealed_and_with_a_certificate_that_allows_everything(place, tmp_path):
    sealed = made(place, tmp_path / "out", bits=200.0, recipients=[RECIPIENT])
    assert sealed.is_sealed
    found = attacked(place, tmp_path / "out", public=None)
    assert found.verdicts[0].level == Level.BROKEN
    assert found.verdicts[0].sentence.startswith("gets what the certificate allows, which is much")
    assert found.headline.endswith("that is too much to hide images: treat this delivery like them.")
    assert not any(figure.exceeds for figure in figures(found).values())
    assert found.delivery.recipients == 2
    assert audit(tmp_path / "out", identity=str(DEVELOPER)).certificates[0].is_noisy


def test_one_attack_that_fails_does_not_cost_the_report_and_a_budget_ends(place, delivery, monkeypatch):
    def fails(view, rng):
        time.sleep(1)
        raise ZeroDivisionError

    broken = [replace(one, run=fails) for one in protected_run.PROTECTED_ATTACKS]
    monkeypatch.setattr(protected_run, "PROTECTED_ATTACKS", broken)
    with pytest.warns(MoleWarning, match="64 of 64 delivered images"):
        found = attacked(place, delivery, public=place / "private.npz", budget=0.9)
    assert [one.status for one in found.attacks] == [Status.GAVE_UP, *[Status.NOT_TRIED] * 3]
    assert "was used up before" in found.attacks[1].words
    assert {verdict.level for verdict in found.verdicts} == {Level.UNKNOWN}


def test_audit_json_has_every_figure_beside_its_bound(report, tmp_path):
    report.save(tmp_path / "audit", summary=True)
    told = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert told["plots"] == []  # the paper's figures are of morphing
    (certificate,) = told["certificates"]
    assert {"bits", "mu", "epsilon", "of_few", "of_many", "sigma", "clip"} < certificate.keys()
    assert told["unsaid"] == list(report.unsaid)
    first = told["attacks"][0]["figures"][0]
    assert first["name"] == "Picked out of 10"
    assert first["low"] < first["measured"] < first["high"]
    assert first["measured"] < first["bound"]
    assert first["exceeds"] is False
    sheet = (tmp_path / "audit" / "summary.html").read_text()
    assert "16 noisy features of an image" in sheet
    assert "Each row tells 1 bit about its image at most" in sheet
    assert "obfuscation" not in sheet


def test_pictures_are_there_or_nowhere(report, tmp_path):
    captions = [picture.caption for found in report.attacks for row in found.pictures for picture in row]
    assert captions[:3] == [
        "Original 1",
        "What the attacker rebuilds of 1",
        "The mean of public images, beside 1",
    ]
    assert render(report).count("<img ") == len(captions) == 9
    report.save(tmp_path / "bare", pictures=False, summary=True)
    for file in (tmp_path / "bare").iterdir():
        assert "data:image" not in file.read_text()


@in_a_browser
@pytest.mark.parametrize("how", [DARK, PHONE], ids=["dark", "phone"])
def test_the_page_in_a_browser(report, browser, tmp_path, how):
    page = report.save(tmp_path / "audit")
    assert problems(browser, page, **how) == []


@pytest.mark.parametrize(("rows", "answer"), [(400, True), (3, None)])
def test_rows_tell_whether_features_are_theirs(rng, rows, answer):
    features = rng.normal(size=(rows, 8)) / np.sqrt(8)
    noisy = features + 0.9 * rng.normal(size=features.shape)
    assert protected_subject.is_own(noisy, features, 0.9) is answer
    if answer:
        assert protected_subject.is_own(noisy, rng.permutation(features), 0.9) is False
        assert not protected_subject.is_too_much(noisy - features, 0.9)
        assert protected_subject.is_too_much(noisy - 3 * features, 0.9)
