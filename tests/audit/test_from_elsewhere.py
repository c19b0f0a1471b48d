"""What attackers have from elsewhere: public images and their classes, images to ask about, other rows."""

from dataclasses import replace

import numpy as np
import pytest

import mole
from mole.attacks import cross_delivery, linkage, membership, moment_matching, overlap, pca_matching
from mole.attacks.tools.attack import Attacker
from mole.audit.from_delivery import subject_of_delivery
from mole.audit.from_elsewhere import with_other, with_public
from mole.audit.levels import Level, Status
from mole.audit.run import audit, audit_subject
from mole.errors import DeliveryError, MoleWarning, SourceError
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.sources.bundled import fashion_mnist
from mole.sources.opening import open_source

OUTSIDERS = [attack.ATTACK for attack in (linkage, pca_matching, moment_matching, membership)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Labelled clothes of 7x7 pixels, delivered under a whitened core with kappa = 1, and public ones."""
    folder, bundled = tmp_path_factory.mktemp("small"), fashion_mnist()
    for part in ("private", "public"):
        pixels = bundled[f"x_{part}"].reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).astype(np.uint8)
        np.savez(folder / f"{part}.npz", x_train=pixels, y_train=bundled[f"y_{part}"])
    weight = np.random.default_rng(5).normal(size=(4, 1, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(1, 7, 7), padding=1)
    source = open_source(str(folder / "private.npz"))
    sample = np.load(folder / "private.npz")["x_train"][:, np.newaxis]
    key = mole.MorphKey.generate(
        (1, 7, 7), core="whitened", sample=layer.plain(sample), insecure_seed=bytes(32)
    )
    deliver(source, layer, key, folder / "delivery")
    return folder, key, layer


def subject_of(place, public="public.npz"):
    folder, key, _ = place
    delivery = Delivery.open(folder / "delivery")
    subject = subject_of_delivery(delivery, key=key, truth=open_source(str(folder / "private.npz")))
    return with_public(subject, delivery.manifest, open_source(str(folder / public)))


def test_a_whitened_delivery_with_labels_is_not_given_a_clean_bill(place):
    """Attacks by covariance alone find nothing, and that was all there was to say of it."""
    report = audit_subject(subject_of(place), attacks=OUTSIDERS)
    found = {one.attack.name: one for one in report.attacks}
    assert found["pca-matching"].status == Status.FAILED
    assert found["moment-matching"].score.reidentified > 0.35
    assert found["membership"].score.membership > 0.75
    outsider = report.verdicts[0]
    assert outsider.attacker == Attacker.OUTSIDER
    assert outsider.level in (Level.LEAKS, Level.BROKEN)
    assert "Matching of higher moments" in outsider.sentence


def test_without_public_images_the_headline_says_what_was_left_out(place):
    folder, key, _ = place
    subject = subject_of_delivery(Delivery.open(folder / "delivery"), key=key)
    outsider = audit_subject(subject, attacks=OUTSIDERS).verdicts[0]
    assert (outsider.level, outsider.fully_tested) == (Level.NOTHING_FOUND, False)
    assert outsider.sentence.startswith("no attack we tried recognised images: 1 attack, on 3,000 images")
    assert "against a core of side q = 49, and no public images" in outsider.sentence
    assert "3 attacks could not be tried" in outsider.sentence
    assert outsider.sentence.endswith("give public images of the same kind to try them")


def test_the_delivered_images_given_as_public_are_noticed(place):
    folder, key, layer = place
    assert subject_of(place).warnings == ()
    with pytest.warns(MoleWarning, match="64 of 64 delivered images that were looked for are among"):
        audit(
            folder / "delivery", key=key, layer=layer, truth=folder / "private.npz",
            public=folder / "private.npz", budget=-1,
        )  # fmt: skip


def test_classes_are_matched_by_name(place, tmp_path):
    """The same classes in another order: numbers differ, names do not."""
    folder, *_ = place
    subject = subject_of(place)
    assert np.array_equal(np.unique(subject.labels), np.arange(10))
    with np.load(folder / "public.npz") as arrays:
        pixels, labels = arrays["x_train"], arrays["y_train"]
    assert np.array_equal(subject.public_labels, labels[: len(subject.public)])
    names = np.array([f"class {number}" for number in range(10)])
    for name, order in (("plain", np.arange(10)), ("turned", np.arange(10)[::-1])):
        np.savez(tmp_path / f"{name}.npz", x_train=pixels, y_train=order[labels], classes=names[order])
    delivery = Delivery.open(folder / "delivery")
    manifest = type(delivery.manifest)(**{**vars(delivery.manifest), "classes": tuple(names)})
    both = [
        with_public(subject, manifest, open_source(str(tmp_path / f"{name}.npz"))).public_labels
        for name in ("plain", "turned")
    ]
    assert np.array_equal(*both)


@pytest.mark.parametrize("label", [-1, 10])
def test_a_public_label_without_a_name_is_refused(place, tmp_path, label):
    """Numbers from the end of a list would call it the last class."""
    folder, *_ = place
    with np.load(folder / "public.npz") as arrays:
        pixels, labels = arrays["x_train"][:50], arrays["y_train"][:50].astype(np.int64)
    names = np.array([f"class {number}" for number in range(10)])
    labels[7] = label
    np.savez(tmp_path / "public.npz", x_train=pixels, y_train=labels, classes=names)
    delivery = Delivery.open(folder / "delivery")
    subject, public = subject_of_delivery(delivery), open_source(str(tmp_path / "public.npz"))
    for classes in (tuple(names), tuple(names[::-1]), None):
        with pytest.raises(SourceError, match=f"the public images have a label {label}, and names of 10"):
            with_public(subject, replace(delivery.manifest, classes=classes), public)


def test_candidates_are_half_delivered_and_half_not(place):
    subject = subject_of(place)
    members = subject.truth.members
    assert members.sum() == len(members) - members.sum() == len(subject.candidates) / 2 > 0
    rows = subject.truth.plain[subject.scored :].reshape(-1, 49)
    inside = [(np.abs(rows - one.reshape(-1)).max(axis=1) < 1e-6).any() for one in subject.candidates]
    assert inside == members.tolist()
    assert len(subject.public) == 3000 - members.sum()  # whom one asks about is not among the public ones


def test_a_second_delivery_under_the_same_key_is_linked_and_one_under_another_is_not(place, tmp_path):
    folder, key, layer = place
    with np.load(folder / "private.npz") as arrays:
        np.savez(tmp_path / "later.npz", x_train=arrays["x_train"][1000:])
    later, first = open_source(str(tmp_path / "later.npz")), Delivery.open(folder / "delivery")
    deliver(later, layer, key, tmp_path / "same", dtype="int8", layer_dtype=None)
    deliver(
        later, layer, mole.MorphKey.generate((1, 7, 7), insecure_seed=bytes([7] * 32)), tmp_path / "new"
    )
    attacks = [cross_delivery.ATTACK, overlap.ATTACK]
    subject = subject_of_delivery(first, key=key)
    told = audit_subject(with_other(subject, first, Delivery.open(tmp_path / "same"), key), attacks=attacks)
    assert told.attacks[0].score.linked > 0.95
    assert told.attacks[0].score.linkable > 100
    assert "which rows stand elsewhere as well" in told.verdicts[0].sentence
    other = with_other(subject, first, Delivery.open(tmp_path / "new"), key)
    assert "was made with another key" in other.warnings[-1]
    assert "0 of the 3,000 rows" in audit_subject(other, attacks=attacks).attacks[0].words


def test_another_delivery_of_another_shape_is_refused(place, tmp_path):
    folder, key, _ = place
    weight = np.ones((4, 1, 3, 3), np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(1, 6, 6), padding=1)
    np.savez(tmp_path / "six.npz", x_train=np.zeros((20, 6, 6), np.uint8))
    six = mole.MorphKey.generate((1, 6, 6), insecure_seed=bytes(32))
    deliver(open_source(str(tmp_path / "six.npz")), layer, six, tmp_path / "six")
    first = Delivery.open(folder / "delivery")
    with pytest.raises(DeliveryError, match="samples of a different shape"):
        with_other(subject_of_delivery(first, key=key), first, Delivery.open(tmp_path / "six"), key)
