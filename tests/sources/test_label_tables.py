"""Labels from a table: one that is named, or one that lies among the images as Hugging Face has it."""

import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from label_tables import LABELS, ROWS, make_photos, told, write_table
from mole.errors import SourceError
from mole.sources.opening import open_source
from source_files import save_image


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path / "photos")


@pytest.mark.parametrize(
    "where",
    [
        "mine.csv", "mine.tsv", "mine.jsonl", "mine.parquet", "photos/mine.parquet",
        "photos/metadata.csv", "photos/metadata.jsonl", "photos/metadata.parquet",
    ],
)  # fmt: skip
def test_every_kind_of_table(photos, tmp_path, where):
    name = write_table(tmp_path / where)
    source = open_source(photos, labels=name if "mine" in where else None)
    assert (source.kind, source.classes, source.labels_from) == ("image folder", ("cat", "dog"), str(name))
    assert told(source) == LABELS
    assert list(source.splits["train"].extra["age"]) == [61, 7, 30]
    assert set(source.splits["train"].extra) == {"age", "file_name"}


def test_without_a_table_folders_are_classes_as_ever(photos):
    (photos / "a.png").unlink()
    (photos / "b.png").unlink()
    source = open_source(photos)
    assert (source.classes, source.labels_from) == (("sub",), None)


@pytest.mark.parametrize(
    "names",
    [
        ["a.png", "b.png", "c.jpg"],  # without folders, where that is enough
        ["a", "b", "c"],
        ["./a.png", "b.png", "sub\\c.jpg"],
        ["{photos}/a.png", "{photos}/b.png", "{photos}/sub/c.jpg"],
    ],
)
def test_files_are_found_by_several_names(photos, tmp_path, names):
    rows = [{"image_id": name.format(photos=photos), "label": label}
            for name, label in zip(names, LABELS.values(), strict=True)]  # fmt: skip
    assert told(open_source(photos, labels=write_table(tmp_path / "t.csv", rows))) == LABELS


def test_letters_in_either_of_their_two_spellings(tmp_path):
    save_image(tmp_path / "photos" / unicodedata.normalize("NFD", "Müller.png"), np.zeros((4, 4), np.uint8))
    rows = [{"file_name": unicodedata.normalize("NFC", "Müller.png"), "label": "x"}]
    source = open_source(tmp_path / "photos", labels=write_table(tmp_path / "t.csv", rows))
    assert source.splits["train"].labels.tolist() == [0]


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_what_a_spreadsheet_saves(photos, tmp_path, start):
    table = tmp_path / "t.csv"
    lines = (
        'File_Name;Label;note\na.png;cat;"says ""no""; twice"\r\nb.png; dog ;\r\nsub/c.jpg;cat;x\r\n;;\r\n'
    )
    table.write_bytes(start + lines.encode())
    source = open_source(photos, labels=table)
    assert told(source) == LABELS
    assert source.splits["train"].extra["note"] == ['says "no"; twice', "", "x"]


def test_numbers_stay_numbers_and_long_ones_are_names(photos, tmp_path):
    def labels(*values):
        rows = [{"file": name, "label": value} for name, value in zip(LABELS, values, strict=True)]
        source = open_source(photos, labels=write_table(tmp_path / "t.csv", rows))
        return source.splits["train"].labels.tolist(), source.classes

    assert labels(3, 0, 3) == ([3, 0, 3], None)
    assert labels(9999, -1, 0) == ([9999, -1, 0], None)
    assert labels(10000, 7, 7) == ([0, 1, 1], ("10000", "7"))  # five digits: a patient's number, perhaps
    assert labels("01", "02", "01") == ([0, 1, 0], ("01", "02"))


def test_another_column(photos, tmp_path):
    rows = [{**row, "finding": word} for row, word in zip(ROWS, "xyx", strict=True)]
    table = write_table(tmp_path / "t.csv", rows)
    assert told(open_source(photos, labels=table, label_column="finding")) == dict(
        zip(LABELS, "xyx", strict=True)
    )
    write_table(photos / "metadata.csv", rows)
    assert open_source(photos, label_column="finding").classes == ("x", "y")


def test_splits_have_a_table_each_or_one_at_the_top(tmp_path):
    for name in ("train/a.png", "train/b.png", "test/a.png"):
        save_image(tmp_path / "photos" / name, np.zeros((4, 4), np.uint8))
    rows = [{"file_name": "a.png", "label": "x"}, {"file_name": "b.png", "label": "y"}]
    write_table(tmp_path / "photos" / "train" / "metadata.jsonl", rows)
    source = open_source(tmp_path / "photos")
    assert told(source) == {"train/a.png": "x", "train/b.png": "y"}
    assert source.splits["test"].labels is None  # as in many test sets
    write_table(tmp_path / "photos" / "test" / "metadata.csv", [{"file_name": "a.png", "label": "y"}])
    assert told(open_source(tmp_path / "photos"), "test") == {"test/a.png": "y"}
    for split in ("train/metadata.jsonl", "test/metadata.csv"):
        (tmp_path / "photos" / split).unlink()
    top = [{"file_name": name, "label": "z"} for name in ("train/a.png", "b.png", "test/a.png")]
    write_table(tmp_path / "photos" / "metadata.csv", top)
    assert told(open_source(tmp_path / "photos"), "test") == {"test/a.png": "z"}


@pytest.mark.parametrize("kind", ["images", "scans"])
def test_a_split_whose_table_has_no_labels_has_none(tmp_path, kind):
    """As Hugging Face lays out a test set that nobody has labelled, with a table of its own."""
    for split, count in (("train", 4), ("test", 3)):
        for number in range(count):
            _save(tmp_path / "data" / split, number, kind)
    ending = "png" if kind == "images" else "dcm"
    names = [f"{number}.{ending}" for number in range(4)]
    labelled = [{"file_name": name, "label": "yx"[index % 2]} for index, name in enumerate(names)]
    write_table(tmp_path / "data" / "train" / "metadata.csv", labelled)
    ages = [{"file_name": name, "age": 60 + index} for index, name in enumerate(names[:3])]
    write_table(tmp_path / "data" / "test" / "metadata.csv", ages)
    source = open_source(tmp_path / "data")
    assert source.classes == ("x", "y")
    assert source.splits["train"].labels.tolist() == [1, 0, 1, 0]
    assert source.splits["test"].labels is None
    assert source.splits["test"].extra["age"] == [60, 61, 62]
    assert source.labels_from == str(tmp_path / "data" / "train" / "metadata.csv")
    _save(tmp_path / "data" / "test" / "new", 9, kind)
    write_table(
        tmp_path / "data" / "test" / "new" / "metadata.csv", [{"file_name": f"9.{ending}", "label": "x"}]
    )
    with pytest.raises(
        SourceError, match=rf"data/test/0\.{ending} has no label in its table, and others have: give every"
    ):
        open_source(tmp_path / "data")


def _save(folder, number, kind):
    if kind == "images":
        save_image(folder / f"{number}.png", np.zeros((4, 4), np.uint8))
    else:
        from dicom_files import STORED, save

        save(folder / f"{number}.dcm", STORED, SOPInstanceUID=f"1.2.{number}")


def test_a_table_without_labels_need_not_name_every_image(tmp_path):
    for name in ("cat/1.png", "dog/2.png", "dog/3.png"):
        save_image(tmp_path / "photos" / name, np.zeros((4, 4), np.uint8))
    table = tmp_path / "photos" / "metadata.csv"
    write_table(table, [{"file_name": "cat/1.png", "age": 4}, {"file_name": "gone.png", "age": 5}])
    source = open_source(tmp_path / "photos")
    assert (source.classes, source.splits["train"].labels.tolist()) == (("cat", "dog"), [0, 1, 1])
    assert source.splits["train"].extra["age"] == [4, None, None]
    assert source.remarks == (
        f"{table} does not fit its images: in the table, but not in the folder (1): gone.png",
        f"{table} does not fit its images: in the folder, but not in the table (2): dog/2.png, dog/3.png",
    )
    write_table(table, [{"file_name": "cat/1.png", "label": "cat"}])
    with pytest.raises(SourceError, match=r"metadata\.csv does not fit the images"):
        open_source(tmp_path / "photos")


def test_a_column_has_one_type_in_all_splits(tmp_path):
    for name in ("train/a.png", "test/b.png"):
        save_image(tmp_path / "photos" / name, np.zeros((4, 4), np.uint8))
    for split, name, dose in (("train", "a.png", "1"), ("test", "b.png", "0.5")):
        rows = [{"file_name": name, "label": "x", "dose": dose}]
        write_table(tmp_path / "photos" / split / "metadata.csv", rows)
    doses = {name: part.extra["dose"] for name, part in open_source(tmp_path / "photos").splits.items()}
    assert doses == {"train": [1.0], "test": [0.5]}
    assert isinstance(doses["train"][0], float)


def test_class_folders_stay_where_a_table_has_no_labels(tmp_path):
    for name in ("cat/1.png", "dog/2.png"):
        save_image(tmp_path / "photos" / name, np.zeros((4, 4), np.uint8))
    rows = [{"file_name": "cat/1.png", "age": 4}, {"file_name": "dog/2.png", "age": 5}]
    write_table(tmp_path / "photos" / "metadata.csv", rows)
    source = open_source(tmp_path / "photos")
    assert (source.classes, source.labels_from) == (("cat", "dog"), None)
    assert source.splits["train"].extra["age"] == [4, 5]
    write_table(tmp_path / "photos" / "metadata.csv", [{**row, "label": "z"} for row in rows])
    assert open_source(tmp_path / "photos").classes == ("z",)


def test_a_table_of_something_else_is_left_alone_and_named(photos):
    (photos / "metadata.csv").write_text("camera,lens\nx,y\n")
    (photos / "sub" / "c.jpg").unlink()
    source = open_source(photos)
    assert source.remarks == (f"{photos}/metadata.csv is not used: it has no column 'file_name'",)
    assert source.splits["train"].labels is None


def test_another_table_makes_another_source(photos, tmp_path):
    plain = open_source(photos, labels=write_table(tmp_path / "t.csv")).fingerprint
    assert open_source(photos, labels=write_table(tmp_path / "u.csv")).fingerprint == plain
    write_table(tmp_path / "t.csv", [{**row, "label": "x"} for row in ROWS])
    assert open_source(photos, labels=tmp_path / "t.csv").fingerprint != plain


def test_another_column_or_place_of_a_table_makes_another_source(tmp_path):
    photos = tmp_path / "photos"
    for name in ("train/a.png", "test/a.png"):
        save_image(photos / name, np.zeros((4, 4), np.uint8))
    table = write_table(photos / "train" / "metadata.csv", [{"file_name": "a.png", "label": 1, "other": 1}])
    plain = open_source(photos)
    assert open_source(photos).fingerprint == open_source(photos, label_column="label").fingerprint
    other = open_source(photos, label_column="other")
    assert other.splits["train"].labels.tolist() == plain.splits["train"].labels.tolist()
    assert other.fingerprint != plain.fingerprint
    table.rename(photos / "test" / "metadata.csv")
    assert open_source(photos).fingerprint != plain.fingerprint


def test_words_as_labels_in_parquet(tmp_path):
    pixels = [[[0, 1], [2, 3]]] * 3
    pq.write_table(
        pa.table({"image": pixels, "label": ["b", "a", "b"], "age": [1, 2, 1]}), tmp_path / "d.parquet"
    )
    source = open_source(tmp_path / "d.parquet")
    assert (source.classes, source.splits["train"].labels.tolist()) == (("a", "b"), [1, 0, 1])
    other = open_source(tmp_path / "d.parquet", label_column="age")
    assert (other.classes, other.splits["train"].labels.tolist()) == (None, [1, 2, 1])
    assert "label" in other.splits["train"].extra
    assert other.fingerprint != source.fingerprint
    with pytest.raises(SourceError, match="has no column 'sex': it has label, age"):
        open_source(tmp_path / "d.parquet", label_column="sex")
