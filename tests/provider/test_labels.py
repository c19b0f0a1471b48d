"""Labels from tables and tags in a delivery: which leave, under which rules, and what is warned of."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

import mole
from chosen_layout import cut
from deliveries import contents
from mole.errors import DeliveryError, MoleWarning, ParameterError, PrivacyWarning, SourceError
from mole.provider.class_names import what_leaves
from mole.provider.deliver import deliver
from mole.provider.plan import Plan
from mole.sources.opening import open_source
from mole.sources.reading import Reading
from mole.sources.source import BadSampleError
from mole.storage.stores import LocalStore
from source_files import save_image

SHAPE = (1, 4, 4)
LAYER = mole.FirstLayer.conv(
    np.random.default_rng(1).normal(size=(4, 1, 3, 3)).astype(np.float32),
    None,
    input_shape=SHAPE,
    padding=1,
)
KEY = mole.MorphKey.generate(SHAPE, insecure_seed=bytes(32), **cut())
COUNT = 12


def pixels(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (4, 4), dtype=np.uint8)


@pytest.fixture
def photos(tmp_path):
    for number in range(COUNT):
        save_image(tmp_path / "photos" / f"{number}.png", pixels(number))
    return tmp_path / "photos"


def table(path, label_of, more="") -> str:
    lines = [f"{number}.png,{label_of(number)},{60 + number}" for number in range(COUNT)]
    path.write_text("\n".join(["file_name,label,age", *lines, more]))
    return str(path)


def delivered(data, out, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return deliver(data, LAYER, KEY, out, **options)


def label_of_row(delivery) -> dict[bytes, int]:
    """The label of each image, by its pixels, from what the key recovers."""
    arrays = mole.recover(delivery, KEY)
    return {
        image.tobytes(): int(label)
        for image, label in zip(arrays["x_train"], arrays["y_train"], strict=True)
    }


def test_labels_and_columns_of_a_table_leave_with_their_images(photos, tmp_path):
    labels = table(tmp_path / "t.csv", lambda number: "odd" if number % 2 else "even")
    made = delivered(photos, tmp_path / "d", labels=labels, keep=["age"])
    assert (made.has_labels, made.labels_from) == (True, labels)
    assert made.delivery.manifest.classes == ("even", "odd")
    assert label_of_row(made.delivery) == {pixels(number).tobytes(): number % 2 for number in range(COUNT)}
    assert made.delivery.manifest.columns == ("age",)


@pytest.mark.parametrize("cell", ['"old"', "1e400", "10000000000000000000000", '"\\ud800"', '{"a": 1}'])
def test_a_column_of_several_types_cannot_be_kept(photos, tmp_path, cell):
    lines = [f'{{"file_name": "{n}.png", "label": 1, "age": {cell if n else 7}}}' for n in range(COUNT)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    if cell == "1e400":  # infinity, which is a number
        assert delivered(photos, tmp_path / "d", labels=tmp_path / "t.jsonl", keep=["age"]).has_labels
        return
    with pytest.raises(ParameterError, match="column 'age' holds values of several types, or some that"):
        deliver(photos, LAYER, KEY, tmp_path / "d", labels=tmp_path / "t.jsonl", keep=["age"])
    assert not (tmp_path / "d").exists()


def test_a_wrong_table_leaves_nothing_behind(photos, tmp_path):
    labels = table(tmp_path / "t.csv", str, "gone.png,1,1")
    with pytest.raises(SourceError, match="does not fit the images"):
        deliver(photos, LAYER, KEY, tmp_path / "d", labels=labels)
    assert not (tmp_path / "d").exists()


def test_a_table_of_something_else_is_mentioned(photos, tmp_path):
    (photos / "metadata.csv").write_text("camera,lens\nx,y\n")
    with pytest.warns(MoleWarning, match=r"metadata\.csv is not used: it has no column 'file_name'"):
        assert not deliver(photos, LAYER, KEY, tmp_path / "d").has_labels


def test_a_column_of_a_table_that_is_not_used_cannot_be_kept(photos, tmp_path):
    (photos / "metadata.csv").write_bytes("file_name,age\n0.png,gr\u00fcn\n".encode("latin-1"))
    with pytest.warns(MoleWarning, match=r"not used: .*metadata\.csv is not text in UTF-8"):
        assert not deliver(photos, LAYER, KEY, tmp_path / "d", labels=False).has_labels
    with pytest.raises(
        ParameterError, match=r"'age' to keep: it has file_name; not used: .*metadata\.csv is not text"
    ):
        deliver(photos, LAYER, KEY, tmp_path / "e", labels=False, keep=["age"])
    assert not (tmp_path / "e").exists()


def test_no_label_means_no_label_though_there_is_a_table(photos, tmp_path):
    table(photos / "metadata.csv", lambda number: "Doe^Jane")
    made = delivered(photos, tmp_path / "d", labels=False)
    assert (made.has_labels, made.labels_from, made.delivery.manifest.classes) == (False, None, None)
    assert b"Doe^Jane" not in b"".join(contents(tmp_path / "d").values())


@pytest.mark.parametrize(
    ("label_of", "reason"),
    [
        (lambda number: f"Doe^Jane {number % 2}", "looks like the name or the number of a patient"),
        (lambda number: 4711000 + number % 2, "looks like the name or the number of a patient"),
        (lambda number: f"c{number // 4}" if number else "rare", "one of them has only 1 sample,"),
    ],
)
def test_classes_of_a_table_that_may_be_people_stay(photos, tmp_path, label_of, reason):
    labels = table(tmp_path / "t.csv", label_of)
    with pytest.warns(MoleWarning, match=reason):
        made = deliver(photos, LAYER, KEY, tmp_path / "d", labels=labels)
    assert made.has_labels
    assert made.delivery.manifest.classes is None
    names = {str(label_of(number)).encode() for number in range(COUNT)}
    assert not [
        name for name in names if len(name) > 3 and name in b"".join(contents(tmp_path / "d").values())
    ]
    asked = delivered(photos, tmp_path / "e", labels=labels, class_names=True)
    assert asked.delivery.manifest.classes == tuple(sorted(name.decode() for name in names))


def test_another_table_is_another_delivery(photos, tmp_path):
    labels = table(tmp_path / "t.csv", lambda number: number % 2)
    first = delivered(photos, tmp_path / "d", labels=labels).delivery.manifest.delivery_id
    assert delivered(photos, tmp_path / "d", labels=labels).delivery.manifest.delivery_id == first
    table(tmp_path / "t.csv", lambda number: number % 3)
    with pytest.raises(DeliveryError, match="holds another delivery already"):
        deliver(photos, LAYER, KEY, tmp_path / "d", labels=labels)


def test_another_column_is_another_delivery_even_of_one_that_was_interrupted(photos, tmp_path, monkeypatch):
    labels = table(tmp_path / "t.csv", lambda number: number % 2)
    delivered(photos, tmp_path / "d", labels=labels)
    with pytest.raises(DeliveryError, match="holds another delivery already"):
        deliver(photos, LAYER, KEY, tmp_path / "d", labels=labels, label_column="age")

    made, make = [], LocalStore.make

    def until_the_disk_is_full(store, name, write):
        made.append(name)
        if sum(name.startswith("data/") for name in made) > 2:
            raise DeliveryError("the disk is full")
        make(store, name, write)

    monkeypatch.setattr(LocalStore, "make", until_the_disk_is_full)
    options = {"labels": labels, "rows_per_shard": 3}
    with pytest.raises(DeliveryError, match="the disk is full"):
        deliver(photos, LAYER, KEY, tmp_path / "e", **options)
    monkeypatch.setattr(LocalStore, "make", make)
    with pytest.raises(DeliveryError, match="holds an unfinished delivery, made with other data"):
        deliver(photos, LAYER, KEY, tmp_path / "e", **options, label_column="age")
    resumed = delivered(photos, tmp_path / "e", **options)
    assert label_of_row(resumed.delivery) == {pixels(n).tobytes(): n % 2 for n in range(COUNT)}


def test_a_plan_opens_the_data_with_its_labels_elsewhere(photos, tmp_path, monkeypatch):
    """As a worker on another machine does, in a folder of its own."""
    table(tmp_path / "t.csv", lambda number: number % 2)
    monkeypatch.chdir(tmp_path)
    reading = Reading.of("t.csv").for_other_processes
    source = open_source(photos, labels="t.csv")
    plan = Plan(source, KEY, LAYER, str(photos), reading=reading)
    monkeypatch.chdir("/")
    there = pickle.loads(pickle.dumps(plan)).open_source()
    assert there.fingerprint == source.fingerprint
    assert there.splits["train"].labels.tolist() == source.splits["train"].labels.tolist()
    assert replace(plan, source=source, key=KEY, labels=False).open_source().splits["train"].labels is None


# DICOM


@pytest.fixture
def scans(tmp_path):
    from dicom_files import save

    for number in range(COUNT):
        elements = {
            "BodyPartExamined": "HEAD" if number % 2 else "CHEST",
            "SOPInstanceUID": f"1.2.{number}",
        }
        if number == 3:
            elements["BurnedInAnnotation"] = "YES"
        folder = "ROE_RICHARD" if number % 3 else "DOE_JANE"
        save(
            tmp_path / "scans" / folder / f"{number}.dcm", pixels(number).astype(np.uint16) * 16, **elements
        )
    return tmp_path / "scans"


def test_labels_of_a_tag_leave_and_folders_do_not(scans, tmp_path):
    from dicom_files import PATIENT, PATIENT_ID

    with pytest.warns(PrivacyWarning, match="1 of 12 DICOM files may show text"):
        made = deliver(scans, LAYER, KEY, tmp_path / "d", label_tag="BodyPartExamined")
    assert made.delivery.manifest.classes == ("CHEST", "HEAD")
    assert what_leaves(open_source(scans)).labels is False
    everything = b"".join(contents(tmp_path / "d").values())
    secrets = ("DOE_JANE", "ROE_RICHARD", PATIENT, PATIENT_ID)  # long: three bytes may come by chance
    for secret in map(str.encode, secrets):
        assert secret not in everything


def test_sixteen_bits_of_a_window_come_back_exactly(scans, tmp_path):
    options = {"window": (2048, 4096), "bits": 16, "label_tag": "BodyPartExamined"}
    with pytest.warns(PrivacyWarning):
        made = deliver(scans, LAYER, KEY, tmp_path / "d", **options)
    found = mole.recover(made.delivery, KEY)["x_train"]
    assert found.dtype == np.uint16
    units = np.rint(found / 65535 * 4095)  # from 0 to 4095, as the window says
    order = sorted(
        range(COUNT), key=lambda number: ("ROE_RICHARD" if number % 3 else "DOE_JANE", f"{number}.dcm")
    )
    np.testing.assert_array_equal(units[:, 0], np.stack([pixels(number) * 16.0 for number in order]))


@pytest.mark.parametrize("kept", [0, 140, 200, -20])
def test_a_damaged_file_can_be_skipped_though_its_tag_is_the_label(scans, tmp_path, kept):
    """However much is left of it: nothing, hardly a header, one without the tag, or most of the pixels."""
    damaged = scans / "ROE_RICHARD" / "1.dcm"
    damaged.write_bytes(damaged.read_bytes()[:kept])
    options = {"label_tag": "BodyPartExamined"}
    with pytest.raises(SourceError, match=r"1\.dcm \(frame 0\) cannot be used.*skip_bad=True"):
        deliver(scans, LAYER, KEY, tmp_path / "d", **options)
    assert not (tmp_path / "d").exists()
    with pytest.warns(PrivacyWarning, match="DICOM files may show text"):
        made = deliver(scans, LAYER, KEY, tmp_path / "d", **options, skip_bad=True)
    assert made.delivery.manifest.rows == COUNT - 1
    assert made.delivery.manifest.classes == ("CHEST", "HEAD")  # five heads are left, enough for a name
    arrays = mole.recover(made.delivery, KEY)
    assert sorted(arrays["y_train"].tolist()) == [0] * 6 + [1] * 5
    assert len(open_source(scans, labels=False).splits["train"]) == COUNT  # so that rows find their files


def test_a_file_whose_label_nobody_knows_is_never_read(scans, monkeypatch):
    """Not even one that could be read again a moment later, as over a bad network."""
    from mole.sources import dicom_headers

    facts_of = dicom_headers.facts_of

    def lost(place, size, tag=None):
        return (
            dicom_headers.HeaderFacts(1, damage="lost")
            if place.name == "5.dcm"
            else facts_of(place, size, tag)
        )

    monkeypatch.setattr(dicom_headers, "facts_of", lost)
    train = open_source(scans, label_tag="BodyPartExamined").splits["train"]
    index = train.extra["file_name"].index("5.dcm")
    assert train.labels[index] == -1
    for look in (train.read, train.outline):
        with pytest.raises(BadSampleError, match=r"5\.dcm .*it is not a readable DICOM image \(lost\)"):
            look(index)
