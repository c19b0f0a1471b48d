"""The audit of a protected delivery: within its certificate, or broken; clothes through a small front."""

import json

import numpy as np
import pytest

from browsers import DARK, PHONE, in_a_browser, problems
from clothes import COUNT, attacked, figures, made
from mole.attacks.tools.attack import Reader
from mole.audit import protected_subject
from mole.audit.levels import Level, Status
from mole.audit.page import render
from mole.audit.run import audit
from mole.provider import protector


@pytest.fixture(scope="module")
def report(clothes, protected):
    return attacked(clothes, protected)


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


def test_the_bounds_are_those_of_the_certificate(protected, report):
    certificate = protected.manifest.protection.certificates["train"]
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
def test_noise_that_is_missing_is_told_as_broken(clothes, tmp_path, monkeypatch, how):
    monkeypatch.setattr(protector, "release", BROKEN[how])
    found = attacked(clothes, made(clothes, tmp_path / "out"), public=None)
    assert {verdict.level for verdict in found.verdicts} == {Level.BROKEN}
    assert all("so the implementation is broken" in verdict.sentence for verdict in found.verdicts)
    assert found.headline.startswith("Do not hand this delivery over: attacks get more out of it")
    assert "the implementation is broken" in render(found)
    if how == "no noise":
        assert figures(found)["Picked out of 10"].exceeds
        assert figures(found)["Row known (AUC)"].exceeds
        assert found.attacks[0].status == Status.SUCCEEDED


def test_noise_is_looked_for_without_a_front_too(clothes, tmp_path, monkeypatch):
    monkeypatch.setattr(protector, "release", BROKEN["no noise"])
    bare = audit(made(clothes, tmp_path / "out"))
    assert {verdict.level for verdict in bare.verdicts} == {Level.BROKEN}
    assert "the noise is not there" in bare.verdicts[0].sentence
    assert not bare.certificates[0].is_noisy


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


def test_the_fewest_rows_that_tell_are_not_mistaken_by_chance(rng):
    """A limit 3 deviations away, which noise crosses once in 740 times, would fail here on both sides."""
    draws, sigma = 20_000, 0.9
    features, others = rng.normal(size=(2, 131, 16))
    apart = np.linalg.norm(features - np.roll(features, 1, axis=0))
    shrink = 2 * sigma * protected_subject.TELLING * (1 + 1e-9) / apart
    features, others = shrink * features, shrink * others
    assert protected_subject.is_own(features, features * (1 - 1e-8), sigma) is None  # no fewer tell
    right, wrong = 0, 0
    for _ in range(draws):
        noise = sigma * rng.normal(size=features.shape)
        right += protected_subject.is_own(features + noise, features, sigma) is True
        wrong += protected_subject.is_own(others + noise, features, sigma) is False
    assert (right, wrong) == (draws, draws)
