"""Names of classes that may be people's stay, and so do labels made of the folders of DICOM files."""

import warnings

import numpy as np
import pytest

import mole
from chosen_layout import cut
from deliveries import contents
from mole.errors import MoleWarning
from mole.exchange.delivery import Delivery
from mole.exchange.verify import verify
from mole.provider.class_names import what_leaves
from mole.provider.deliver import deliver
from mole.sources.source import Source, array_split

SHAPE = (1, 4, 4)


def source_of(classes, counts, kind="image folder", **splits) -> Source:
    labels = np.repeat(np.arange(len(counts)), counts)
    parts = {"train": labels, **splits}
    return Source(
        kind,
        {name: array_split(np.zeros((len(part), 4, 4)), part, "x") for name, part in parts.items()},
        classes,
        "0" * 64,
    )


def names(count: int) -> tuple[str, ...]:
    return tuple(f"class {number}" for number in range(count))


def test_ordinary_classes_leave_with_their_names():
    for source in (
        source_of(("cat", "dog"), [5, 5]),
        source_of(names(100), [5] * 100),
        source_of(("cat", "dog"), [4, 5], test=np.array([0])),  # both splits together
        source_of(("cat", "dog", "no such sample"), [9, 9]),
        source_of(None, [1, 1]),
    ):
        assert what_leaves(source) == (True, True, None)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (source_of(names(101), [5] * 101), "the names of 101 classes stay here: so many may be people's"),
        (source_of(("cat", "dog"), [400, 4]), "one of them has only 4 samples, and may be a person's"),
        (source_of(("Doe^Jane", "Roe^Max"), [9, 9]), "looks like the name or the number of a patient"),
        (source_of(("p-19700101", "q"), [9, 9]), "looks like the name or the number of a patient"),
    ],
)
def test_names_that_may_be_people_s_stay_unless_they_are_asked_for(source, reason):
    leaving = what_leaves(source)
    assert leaving[:2] == (True, False)
    assert reason in leaving.kept
    assert not any(name in leaving.kept for name in source.classes)
    assert what_leaves(source, class_names=True) == (True, True, None)
    assert what_leaves(source, class_names=False) == (True, False, None)
    assert what_leaves(source, labels=False) == (False, True, None)
    assert what_leaves(source, labels=True) == leaving


@pytest.mark.parametrize("class_names", [None, True, False])
@pytest.mark.parametrize("labels", [None, True, False])
@pytest.mark.parametrize("kind", ["DICOM", "image folder"])
def test_asking_for_less_never_gives_more(kind, labels, class_names):
    source = source_of(("DOE_JANE", "ROE_RICHARD"), [9, 9], kind=kind)
    unasked, leaving = what_leaves(source), what_leaves(source, class_names=class_names, labels=labels)
    if not labels and not class_names:
        assert leaving.labels <= unasked.labels
    assert leaving.labels == (labels is not False and bool(labels or class_names or unasked.labels))
    if labels is not False:
        assert leaving.class_names == (unasked.class_names if class_names is None else class_names)


@pytest.fixture
def patients(tmp_path):
    """DICOM files as an archive keeps them: a folder for each patient, and in it one for each study."""
    from dicom_files import save

    rng = np.random.default_rng(0)
    for patient in ("DOE_JANE", "ROE_RICHARD"):
        for study in ("2021", "2022"):
            for number in range(3):
                pixels = rng.integers(0, 256, (4, 4), dtype=np.uint8)
                save(tmp_path / "archive" / patient / study / f"{number}.dcm", pixels)
    return tmp_path / "archive"


def deliver_to(out, patients, **options) -> Delivery:
    weight = np.random.default_rng(1).normal(size=(4, 1, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=SHAPE, padding=1)
    key = mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32), **cut())
    return deliver(patients, layer, key, out, **options).delivery


def test_no_patient_s_name_leaves_an_archive(tmp_path, patients):
    with pytest.warns(MoleWarning, match="often named after patients: .* class_names=True hands them over"):
        delivery = deliver_to(tmp_path / "d", patients)
    assert delivery.manifest.classes is None
    assert delivery.labels("train") is None  # which would tell whose images are one patient's
    for name, content in contents(tmp_path / "d").items():
        assert b"DOE_JANE" not in content, name  # the whole: three bytes of it may come by chance
    assert all(check.holds for check in verify(delivery))


def test_without_names_the_labels_of_an_archive_stay_too(tmp_path, patients):
    with pytest.warns(MoleWarning, match="labels made of them stay here; labels=True hands them over"):
        delivery = deliver_to(tmp_path / "d", patients, class_names=False)
    assert delivery.labels("train") is None


def test_folders_of_dicom_files_are_classes_when_asked(tmp_path, patients):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = deliver_to(tmp_path / "named", patients, class_names=True)
        numbered = deliver_to(tmp_path / "numbered", patients, class_names=False, labels=True)
    assert named.manifest.classes == ("DOE_JANE", "ROE_RICHARD")
    assert numbered.manifest.classes is None
    for delivery in (named, numbered):
        assert sorted(delivery.labels("train").tolist()) == [0] * 6 + [1] * 6
