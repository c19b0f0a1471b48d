"""The audit of real deliveries: what it says, and that it says what is wrong instead of crashing."""

import json
from dataclasses import replace

import numpy as np
import pytest

import mole
from browsers import LIGHT, PHONE, in_a_browser, problems
from deliveries import make_key, make_layer, write_npz
from mole.attacks import ATTACKS
from mole.attacks.tools.attack import ATTACKERS, DEVELOPER, INJECTOR, OUTSIDER, THIEF
from mole.audit.from_delivery import Known, subject_of_delivery
from mole.audit.page import render
from mole.audit.paper_figures import paper_figures
from mole.audit.report import BROKEN, LEAKS, NOT_APPLICABLE, NOT_COMPARED, NOT_TRIED, SUCCEEDED, UNKNOWN
from mole.audit.run import audit
from mole.audit.subject import subject_of_setting
from mole.audit.write import write_report
from mole.demo.story import load_images
from mole.errors import ParameterError
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

BY_ALGEBRA = [attack for attack in ATTACKS if attack.name == "channel-fingerprint"]


@pytest.fixture(scope="module")
def clothes(tmp_path_factory):
    """A delivery of Fashion-MNIST with a layer of 16 channels, its source and public images."""
    folder, images = tmp_path_factory.mktemp("clothes"), load_images()
    rng = np.random.default_rng(5)
    layer = mole.FirstLayer.conv(
        rng.normal(size=(16, 1, 3, 3)).astype(np.float32), None, input_shape=(1, 28, 28), padding=1,
        normalisation=mole.Normalisation((0.286,), (0.353,)),
    )  # fmt: skip
    np.savez(folder / "private.npz", x_train=images["x_private"], y_train=images["y_private"])
    np.savez(folder / "public.npz", x_train=images["x_public"])
    key = mole.MorphKey.generate(
        (1, 28, 28), core="whitened", sample=layer.plain(images["x_private"][:, np.newaxis])
    )
    source = open_source(str(folder / "private.npz"))
    deliver(source, layer, key, LocalStore(folder / "delivery"), dtype="int8")
    public = open_source(str(folder / "public.npz"))
    return LocalStore(folder / "delivery"), Known(key=key, layer=layer, truth=source, public=public)


@pytest.fixture(scope="module")
def clothes_report(clothes):
    return audit(subject_of_delivery(*clothes), plots=paper_figures(), budget=240)


def test_the_verdicts_on_a_delivery(clothes_report):
    levels = {verdict.attacker: verdict.level for verdict in clothes_report.verdicts}
    assert levels[DEVELOPER] == levels[INJECTOR] == BROKEN
    assert levels[THIEF] == BROKEN  # grey images come back without the layer's weights, too
    assert levels[OUTSIDER] != BROKEN
    attacks = {attack.name: attack for attack in clothes_report.attacks}
    assert attacks["channel-fingerprint"].status == SUCCEEDED
    assert attacks["channel-fingerprint"].score["channels"] == 1
    assert attacks["channel-fingerprint"].score["reidentified"] == 1
    assert "1 / beta!" in attacks["channel-fingerprint"].source
    assert attacks["channel-fingerprint"].published.endswith("4.8e-14")  # 1 / 16!
    assert clothes_report.warnings == ()


def test_every_attack_is_told_of(clothes_report):
    assert [attack.name for attack in clothes_report.attacks] == [attack.name for attack in ATTACKS]
    assert len(ATTACKS) == 13
    assert {attack.attacker for attack in ATTACKS} == set(ATTACKERS)
    for attack in clothes_report.attacks:
        assert attack.words.endswith((".", "!")), attack.name
        assert attack.advice
        if attack.status not in (NOT_APPLICABLE, NOT_TRIED):
            assert attack.score, attack.name
            assert attack.seconds > 0


@in_a_browser
@pytest.mark.parametrize("how", [LIGHT, PHONE], ids=["light", "phone"])
def test_the_page_of_a_real_delivery(clothes_report, browser, tmp_path, how):
    page = write_report(clothes_report, tmp_path / "audit")
    assert problems(browser, page, **how) == []
    text = page.read_text()
    assert "recovers every image" in text.lower()
    told = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert told["format"] == "mole-audit"
    assert len(told["attacks"]) == len(ATTACKS)
    assert (tmp_path / "audit").stat().st_mode & 0o077 == 0


def test_another_key_is_said(clothes):
    store, known = clothes
    other = mole.MorphKey.generate((1, 28, 28))
    report = audit(subject_of_delivery(store, replace(known, key=other)), attacks=BY_ALGEBRA)
    assert "is not the one this delivery was made with" in report.warnings[0]
    assert report.attacks[0].status == NOT_COMPARED
    assert report.attacks[0].score == {}
    assert {verdict.level for verdict in report.verdicts} == {UNKNOWN}
    assert "is not the one this delivery was made with" in render(report)


def test_another_source_is_said(clothes, tmp_path):
    store, known = clothes
    images = load_images()["x_private"]
    for name, wrong in (("order", images[::-1]), ("fewer", images[:50])):
        np.savez(tmp_path / f"{name}.npz", x_train=wrong)
        source = open_source(str(tmp_path / f"{name}.npz"))
        report = audit(subject_of_delivery(store, replace(known, truth=source)), attacks=BY_ALGEBRA)
        assert "does not hold the images of this delivery" in report.warnings[0]
        assert "does not hold the images of this delivery" in render(report)
        assert report.attacks[0].status == SUCCEEDED  # compared with what the key recovers


def test_another_layer_or_none_is_said(clothes):
    store, known = clothes
    layer = replace(known.layer, weight=known.layer.weight + 1)
    report = audit(subject_of_delivery(store, replace(known, layer=layer)), attacks=BY_ALGEBRA)
    assert "is not the one this delivery was made for" in report.warnings[0]
    assert report.attacks[0].status == NOT_TRIED
    report = audit(subject_of_delivery(store, replace(known, layer=None)), attacks=BY_ALGEBRA)
    assert "add --layer" in report.attacks[0].words
    assert report.costs == ()
    assert report.verdicts[2].level == UNKNOWN
    assert "add --layer" in report.verdicts[2].sentence


def test_too_few_images_are_said(tmp_path):
    write_npz(tmp_path / "data.npz", train=10, test=0)
    source, key, layer = open_source(str(tmp_path / "data.npz")), make_key(), make_layer()
    store = LocalStore(tmp_path / "delivery")
    deliver(source, layer, key, store)
    report = audit(subject_of_delivery(store, Known(key=key, layer=layer, truth=source)))
    assert "There are only 10 rows" in report.warnings[-1]
    assert {attack.status for attack in report.attacks} <= {NOT_APPLICABLE, NOT_TRIED, NOT_COMPARED}
    assert "There are only 10 rows" in render(report)


def test_a_delivery_without_a_layer(tmp_path):
    write_npz(tmp_path / "data.npz", train=60, test=0)
    source, key, layer = open_source(str(tmp_path / "data.npz")), make_key(), make_layer()
    store = LocalStore(tmp_path / "requests")
    deliver(source, layer, key, store, layer_dtype=None)
    report = audit(subject_of_delivery(store, Known(key=key, layer=layer)))
    assert "recovered from the delivery with its key" in report.warnings[0]
    assert {verdict.level for verdict in report.verdicts} == {LEAKS}  # an orthogonal core keeps distances


def test_no_time_is_said(clothes):
    report = audit(subject_of_delivery(*clothes), attacks=BY_ALGEBRA, budget=-1)
    assert report.attacks[0].status == NOT_TRIED
    assert "--budget" in report.attacks[0].words


def test_a_setting_without_any_data():
    rng = np.random.default_rng(1)
    layer = mole.FirstLayer.conv(
        rng.normal(size=(16, 3, 3, 3)).astype(np.float32), None, input_shape=(3, 16, 16), padding=1
    )
    report = audit(subject_of_setting(layer, kappa=3), attacks=BY_ALGEBRA)
    assert report.attacks[0].status == SUCCEEDED
    assert report.title == "What this setting would give away"
    assert not report.private
    assert [cost.what for cost in report.costs]
    with pytest.raises(ParameterError, match="no bundled images of shape 2x16x16"):
        subject_of_setting(replace(layer, weight=layer.weight[:, :2], input_shape=(2, 16, 16)))
