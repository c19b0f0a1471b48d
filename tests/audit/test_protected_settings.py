"""What the audit of a protected delivery is given, and what it says where that is little, wrong or odd."""

import time
from dataclasses import replace

import numpy as np
import pytest

import mole
from clothes import FEATURES, attacked, figures, made
from fronts import feature_key, feature_layer, write_front
from mole.audit import protected_run
from mole.audit.levels import Level, Status
from mole.audit.page import render
from mole.audit.run import audit
from mole.audit.summary import render_summary
from mole.errors import DeliveryError, FileError, MoleWarning, ParameterError, SourceError
from mole.provider.deliver import deliver
from secrets_kept import DEVELOPER, RECIPIENT


def test_without_a_front_there_is_the_certificate_and_one_sentence(clothes, protected):
    found = attacked(clothes, protected, front=None)
    assert [one.bits for one in found.certificates] == [pytest.approx(1.0)]
    assert found.remarks == ("Attacks on a protected delivery need its front: give it to test this.",)
    assert {verdict.level for verdict in found.verdicts} == {Level.UNKNOWN}
    assert found.headline == (
        "This delivery tells 1 bit about each image at most besides its label, on average, whoever reads "
        "it. No attack was tried."
    )
    bare = audit(protected)
    assert bare.remarks[0].startswith(
        "Attacks on a protected delivery need its key, its front and the images"
    )
    assert render(bare).count("ttacks on a protected delivery need its key") == 1
    assert "Attacks were run" not in render(bare)


def test_what_does_not_belong_to_it_is_refused_in_a_sentence(clothes, protected, tmp_path):
    other = write_front(tmp_path / "other.onnx")
    with pytest.raises(FileError, match=r"other\.onnx is not the front of this delivery: its SHA-256"):
        attacked(clothes, protected, front=other)
    with pytest.raises(DeliveryError, match="was made with key"):
        attacked(clothes, protected, key=feature_key(FEATURES, seed=1))
    with pytest.raises(ParameterError, match="not compared with another one"):
        attacked(clothes, protected, other=protected)
    np.savez(tmp_path / "small.npz", x_train=np.zeros((80, 5, 5), np.uint8))
    with pytest.raises(SourceError, match="5x5"):
        attacked(clothes, protected, public=tmp_path / "small.npz")
    images = mole.MorphKey.generate((1, 14, 14), insecure_seed=bytes(32))
    layer = mole.FirstLayer.conv(
        np.random.default_rng(0).normal(size=(4, 1, 3, 3)), None, input_shape=(1, 14, 14)
    )
    deliver(clothes / "private.npz", layer, images, tmp_path / "images")
    with pytest.raises(ParameterError, match="is not protected, and has no front: leave it out"):
        audit(tmp_path / "images", front=clothes / "front.onnx")


def test_a_source_that_is_not_its_own_is_found_out(clothes, protected, tmp_path):
    """Noise hides which image a row is, and not whether all of them are."""
    np.savez(tmp_path / "given.npz", x_train=np.load(clothes / "private.npz")["x_train"][::-1])
    with pytest.warns(MoleWarning, match="could not be compared with the truth"):
        found = attacked(clothes, protected, truth=tmp_path / "given.npz")
    assert {verdict.level for verdict in found.verdicts} == {Level.UNKNOWN}
    assert "Attacks were run" not in render(found)


def test_another_first_layer_is_refused(protected):
    with pytest.raises(DeliveryError, match=r"was made for first layer .* give the layer that it was made"):
        audit(protected, layer=feature_layer(FEATURES, seed=1))


def test_too_few_rows_to_tell_are_told_of(clothes, tmp_path):
    arrays = np.load(clothes / "private.npz")
    np.savez(tmp_path / "few.npz", x_train=arrays["x_train"][:12], y_train=arrays["y_train"][:12])
    few = made(clothes, tmp_path / "out", data=tmp_path / "few.npz")
    with pytest.warns(MoleWarning, match="too few rows to tell"):
        found = attacked(clothes, few, truth=tmp_path / "few.npz", public=None)
    assert [*figures(found)] == ["Picked out of 10", "Picked out of 10, labels known"]


def test_the_split_whose_rows_tell_most_is_attacked_and_views_are_counted(clothes, tmp_path):
    arrays = np.load(clothes / "private.npz")
    np.savez(tmp_path / "split.npz", x_train=arrays["x_train"][:100], x_test=arrays["x_train"][100:300])
    bits = {"train": 4.0, "test": 0.5}
    with pytest.warns(MoleWarning, match="leaves as 2 views"):
        two = made(clothes, tmp_path / "two", data=tmp_path / "split.npz", bits=bits, views=2)
    found = attacked(clothes, two, truth=tmp_path / "split.npz", public=None)
    assert "attacked: 200 of split 'train'" in found.subject["rows"]
    assert {one.split: round(one.bits, 6) for one in found.certificates} == bits
    assert any("each image has 2 rows" in sentence for sentence in found.unsaid)
    one, both = (figures(found)[f"{name} (AUC)"] for name in ("Row known", "Among all rows"))
    assert 0.9 < one.bound <= both.bound <= 1
    assert all(not figure.exceeds for figure in figures(found).values())
    assert found.headline.startswith("This delivery tells 8 bits about each image at most, on average")
    views = {one.split: (one.views, round(one.image_bits, 6)) for one in found.certificates}
    assert views == {"train": (2, 8.0), "test": (1, 0.5)}
    assert "Bits about its image in all of them, at most" in render(found)
    assert found.verdicts[0].level == Level.WITHIN  # rows and images were put together rightly


def test_what_it_does_not_say_is_said(clothes, tmp_path, monkeypatch):
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "state"))
    for name in ("one", "two"):
        made(clothes, tmp_path / name)
    found = attacked(clothes, tmp_path / "two", front=None)
    assert found.headline == (
        "This delivery tells 1 bit about each image at most besides its label, on average, and all that "
        "left under its key so far 2 bits, whoever reads it. No attack was tried."
    )
    assert found.headline in render_summary(found)
    told = " ".join(found.unsaid)
    for words in (
        "Bits are an average over images", "Labels leave besides, in train", "Several images of one person",
        "equally likely beforehand", "400 rows",
        "in 2 deliveries under this key so far, no image in this delivery has given away more than 2 bits",
    ):  # fmt: skip
        assert words in told
    monkeypatch.setenv("MOLE_STATE", str(tmp_path / "elsewhere"))
    found = attacked(clothes, tmp_path / "two", front=None)
    assert "so far" not in found.headline
    told = " ".join(found.unsaid)
    assert "nothing of this delivery was counted on this machine" in told
    assert not (tmp_path / "elsewhere").exists()  # looking leaves no trace


def test_sealed_and_with_a_certificate_that_allows_everything(clothes, tmp_path):
    sealed = made(clothes, tmp_path / "out", bits=200.0, recipients=[RECIPIENT])
    assert sealed.is_sealed
    found = attacked(clothes, tmp_path / "out", public=None)
    assert found.verdicts[0].level == Level.BROKEN
    assert found.verdicts[0].label == "Broken, and allowed"  # by the provider: the software works
    assert found.verdicts[0].sentence.startswith("gets what the certificate allows, which is much")
    assert found.headline.endswith("that is too much to hide images: treat this delivery like them.")
    assert not any(figure.exceeds for figure in figures(found).values())
    assert found.delivery.recipients == 2
    assert audit(tmp_path / "out", identity=str(DEVELOPER)).certificates[0].is_noisy


def test_one_attack_that_fails_does_not_cost_the_report_and_a_budget_ends(clothes, protected, monkeypatch):
    def fails(view, rng):
        time.sleep(0.4)
        raise ZeroDivisionError

    broken = [replace(one, run=fails) for one in protected_run.PROTECTED_ATTACKS]
    monkeypatch.setattr(protected_run, "PROTECTED_ATTACKS", broken)
    with pytest.warns(MoleWarning, match="64 of 64 delivered images"):
        found = attacked(clothes, protected, public=clothes / "private.npz", budget=0.3)
    assert [one.status for one in found.attacks] == [Status.GAVE_UP, *[Status.NOT_TRIED] * 3]
    assert "was used up before" in found.attacks[1].words
    assert {verdict.level for verdict in found.verdicts} == {Level.UNKNOWN}
