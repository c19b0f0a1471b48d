"""The audit of real deliveries: what it says, and that it says what is wrong instead of crashing."""

import json
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

import mole
from browsers import LIGHT, PHONE, in_a_browser, problems
from deliveries import make_key, make_layer, write_npz
from mole.attacks import ATTACKS
from mole.attacks.tools.attack import Attacker
from mole.audit.from_delivery import subject_of_delivery
from mole.audit.from_elsewhere import with_public
from mole.audit.from_setting import subject_of_setting
from mole.audit.levels import Level, Status
from mole.audit.page import render
from mole.audit.run import audit, audit_setting, audit_subject
from mole.errors import DeliveryError, MoleWarning, ParameterError
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.sources.bundled import fashion_mnist
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

BY_ALGEBRA = [attack for attack in ATTACKS if attack.name == "channel-fingerprint"]


@pytest.fixture(scope="module")
def clothes(tmp_path_factory):
    """A delivery of Fashion-MNIST with a layer of 16 channels, and what its provider knows."""
    folder, images = tmp_path_factory.mktemp("clothes"), fashion_mnist()
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
    known = {"key": key, "layer": layer, "truth": source, "public": public}
    return Delivery.open(folder / "delivery"), known


def by_algebra(clothes, **changed):
    """The audit of the clothes with one attack, and something else than its provider knows."""
    delivery, known = clothes
    return audit_subject(subject_with(delivery, **known | changed), attacks=BY_ALGEBRA)


def subject_with(delivery, *, public=None, **known):
    """A delivery, and public images where there are some."""
    subject = subject_of_delivery(delivery, **known)
    return subject if public is None else with_public(subject, delivery.manifest, public)


def small_delivery(folder, rows, **options):
    """A delivery of small random images, and what its provider knows."""
    source = open_source(str(write_npz(folder / "data.npz", train=rows, test=0)))
    known = {"key": make_key(), "layer": make_layer(), "truth": source}
    deliver(source, known["layer"], known["key"], folder / "delivery", **options)
    return folder / "delivery", known


@pytest.fixture(scope="module")
def clothes_report(clothes):
    delivery, known = clothes
    return audit(delivery, **known, budget=240)


def test_the_verdicts_on_a_delivery(clothes_report):
    levels = {verdict.attacker: verdict.level for verdict in clothes_report.verdicts}
    assert levels[Attacker.DEVELOPER] == levels[Attacker.INJECTOR] == Level.BROKEN
    assert levels[Attacker.THIEF] == Level.BROKEN  # grey images come back without the layer's weights, too
    assert levels[Attacker.OUTSIDER] != Level.BROKEN
    (found,) = (one for one in clothes_report.attacks if one.attack in BY_ALGEBRA)
    assert found.status == Status.SUCCEEDED
    assert found.score.channels == 1
    assert found.score.reidentified == 1
    assert "1 / beta!" in found.attack.source
    assert found.published.endswith("4.8e-14")  # 1 / 16!
    assert clothes_report.warnings == ()


def test_the_report_can_be_tied_to_its_delivery(clothes, clothes_report):
    manifest, told = clothes[0].manifest, clothes_report.delivery
    assert (told.delivery_id, told.name, told.images) == (manifest.delivery_id, "delivery", 3000)
    assert told.splits == {"train": 3000}
    assert told.labelled == ("train",)
    assert told.has_layer
    assert (told.recipients, told.signature) == (0, "not signed")
    assert clothes_report.headline.startswith(
        "Treat this delivery like the images: its receiver can get them"
    )
    assert clothes_report.in_order[0].attacker == Attacker.DEVELOPER
    assert datetime.now(UTC).date() - date.fromisoformat(clothes_report.date) <= timedelta(days=1)
    words = " ".join(found.advice for found in clothes_report.attacks)
    assert "whitened core" not in words  # it has one
    assert "kappa = 1" not in words


def test_every_attack_is_told_of(clothes_report):
    assert [found.attack for found in clothes_report.attacks] == list(ATTACKS)
    assert len(ATTACKS) == 18
    names = [attack.name for attack in ATTACKS]  # a short audit must not leave out what decides
    assert names.index("channel-fingerprint") < names.index("pca-matching") < names.index("moment-matching")
    assert {attack.attacker for attack in ATTACKS} == set(Attacker)
    for found in clothes_report.attacks:
        assert found.words.endswith((".", "!")), found.attack.name
        assert bool(found.advice) is (found.status in (Status.SUCCEEDED, Status.PARTLY)), found.attack.name
        if found.status not in (Status.NOT_APPLICABLE, Status.NOT_TRIED):
            assert found.score, found.attack.name
            assert found.seconds >= 0  # rounded: a quick one may take none


@pytest.fixture(scope="module")
def clothes_page(clothes_report, tmp_path_factory):
    return clothes_report.save(tmp_path_factory.mktemp("page") / "audit")


@in_a_browser
@pytest.mark.parametrize("how", [LIGHT, PHONE], ids=["light", "phone"])
def test_the_page_of_a_real_delivery(clothes_page, browser, how):
    assert problems(browser, clothes_page, **how) == []
    text = clothes_page.read_text()
    assert "recovers every image" in text.lower()
    told = json.loads((clothes_page.parent / "audit.json").read_text())
    assert told["format"] == "mole-audit"
    assert len(told["attacks"]) == len(ATTACKS)
    assert clothes_page.parent.stat().st_mode & 0o077 == 0


def test_another_key_is_an_error_before_any_attack(clothes):
    delivery, known = clothes
    begun = []
    with pytest.raises(DeliveryError, match="was made with key") as caught:
        audit(
            delivery,
            **known | {"key": mole.MorphKey.generate((1, 28, 28))},
            progress=lambda done, total: begun.append(done),
        )
    assert known["key"].fingerprint in str(caught.value)
    assert begun == []


def test_what_is_wrong_is_warned_of_before_any_attack(clothes):
    delivery, known = clothes
    layer, begun = known["layer"], []
    with pytest.warns(MoleWarning, match="is not the one this delivery was made for") as seen:
        report = audit(
            delivery,
            **known | {"layer": replace(layer, weight=layer.weight + 1)},
            budget=-1,
            progress=lambda done, total: begun.append(len(seen)),
        )
    assert report.warnings == tuple(str(warning.message) for warning in seen)
    assert begun[0] == len(report.warnings)


def test_addresses_are_as_good_as_what_they_lead_to(tmp_path):
    place, known = small_delivery(tmp_path, rows=40)
    mole.save(known["layer"], tmp_path / "layer.safetensors")
    addresses = {"layer": tmp_path / "layer.safetensors", "truth": tmp_path / "data.npz"}
    write_npz(tmp_path / "public.npz", train=40, test=0, seed=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MoleWarning)  # they are found to be the delivery's own
        opened = audit(Delivery.open(place), **known, budget=-1)
        named = audit(
            str(place), key=known["key"], **addresses, public=str(tmp_path / "public.npz"), budget=-1
        )
    assert (named.subject, named.warnings) == (opened.subject, opened.warnings)
    assert [cost.counted for cost in named.costs] == [cost.counted for cost in opened.costs] != []


def test_another_source_is_said(clothes, tmp_path):
    images = fashion_mnist()["x_private"]
    for name, wrong in (("order", images[::-1]), ("fewer", images[:50])):
        np.savez(tmp_path / f"{name}.npz", x_train=wrong)
        report = by_algebra(clothes, truth=open_source(str(tmp_path / f"{name}.npz")))
        assert "does not hold the images of this delivery" in report.warnings[0]
        assert "does not hold the images of this delivery" in render(report)
        assert report.attacks[0].status == Status.SUCCEEDED  # compared with what the key recovers


def test_another_layer_or_none_is_said(clothes):
    layer = clothes[1]["layer"]
    report = by_algebra(clothes, layer=replace(layer, weight=layer.weight + 1))
    assert "is not the one this delivery was made for" in report.warnings[0]
    assert report.attacks[0].status == Status.NOT_TRIED
    assert "Another first layer than the delivery's was given: give that one" in report.attacks[0].words
    assert "first layer than the delivery's was given" in report.verdicts[2].sentence
    report = by_algebra(clothes, layer=None)
    assert "first layer was not given: give it" in report.attacks[0].words
    assert report.costs == ()
    assert report.verdicts[2].level == Level.UNKNOWN
    assert "first layer was not given: give it" in report.verdicts[2].sentence


def test_a_damaged_file_is_said(tmp_path):
    place, known = small_delivery(tmp_path, rows=40)
    layer = place / "augmented-layer.safetensors"
    delivery = Delivery.open(place)
    assert subject_with(delivery, **known).warnings == ()
    np.savez(tmp_path / "other.npz", x_train=np.zeros((40, 8, 8, 3), np.uint8))
    other = LocalStore(tmp_path / "other")
    deliver(open_source(str(tmp_path / "other.npz")), make_layer(), make_key(9), other)
    layer.write_bytes((tmp_path / "other" / layer.name).read_bytes())
    assert "augmented-layer.safetensors is not as it was made" in subject_of_delivery(
        delivery, **known
    ).warnings[0]  # fmt: skip


def test_too_few_images_are_said(tmp_path):
    place, known = small_delivery(tmp_path, rows=10)
    report = audit(place, **known)
    assert "There are only 10 rows" in report.warnings[-1]
    allowed = {Status.NOT_APPLICABLE, Status.NOT_TRIED, Status.NOT_COMPARED}
    assert {found.status for found in report.attacks} <= allowed
    assert "There are only 10 rows" in render(report)


def test_a_delivery_without_a_layer(tmp_path):
    place, known = small_delivery(tmp_path, rows=60, layer_dtype=None)
    with pytest.warns(MoleWarning, match="recovered from the delivery with its key"):
        report = audit(place, key=known["key"], layer=known["layer"])
    assert "recovered from the delivery with its key" in report.warnings[0]
    levels = {verdict.level for verdict in report.verdicts}
    assert levels == {Level.LEAKS}  # an orthogonal core keeps distances


def test_no_time_is_said(clothes):
    delivery, known = clothes
    report = audit(delivery, **known, budget=-1)
    assert {found.status for found in report.attacks} == {Status.NOT_TRIED}
    assert "give a larger budget" in report.attacks[0].words


def test_an_attack_that_crashes_costs_only_itself(clothes):
    delivery, known = clothes

    def crash(view, rng):
        raise ZeroDivisionError

    crashing = replace(BY_ALGEBRA[0], name="crashing", run=crash)
    subject = subject_with(delivery, **known)
    report = audit_subject(subject, attacks=[crashing, *BY_ALGEBRA])
    assert [found.status for found in report.attacks] == [Status.GAVE_UP, Status.SUCCEEDED]
    assert report.attacks[0].words == "It gave up: ZeroDivisionError."


def test_a_setting_without_any_data():
    rng = np.random.default_rng(1)
    layer = mole.FirstLayer.conv(
        rng.normal(size=(16, 3, 3, 3)).astype(np.float32), None, input_shape=(3, 16, 16), padding=1
    )
    report = audit_subject(subject_of_setting(layer, kappa=3), attacks=BY_ALGEBRA)
    assert report.attacks[0].status == Status.SUCCEEDED
    assert report.title == "What this setting would give away"
    assert not report.private
    assert [cost.what for cost in report.costs]
    with pytest.raises(ParameterError, match="no bundled images of shape 2x16x16"):
        audit_setting(replace(layer, weight=layer.weight[:, :2], input_shape=(2, 16, 16)))


def test_a_setting_from_a_layers_file(tmp_path):
    mole.save(make_layer(), tmp_path / "layer.safetensors")
    report = audit_setting(
        tmp_path / "layer.safetensors", kappa=2, core="gaussian", dtype="int8", budget=-1
    )
    told = {name: report.subject[name] for name in ("input shape", "kappa", "core", "stored as")}
    assert told == {"input shape": "3x8x8", "kappa": 2, "core": "gaussian", "stored as": "int8"}
    assert {found.status for found in report.attacks} == {Status.NOT_TRIED}
