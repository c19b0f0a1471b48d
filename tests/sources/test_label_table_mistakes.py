"""Tables of labels that do not fit, or cannot be read: everything that is wrong, in one message."""

from pathlib import Path

import numpy as np
import pytest

from label_tables import LABELS, ROWS, make_photos, mistakes, told, write_table
from mole.errors import ParameterError, SourceError
from mole.sources.opening import open_source
from mole.sources.reading import Reading
from source_files import save_image


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path / "photos")


def test_all_mistakes_in_one_message(photos, tmp_path):
    rows = [
        *[{"file_name": f"gone{number}.png", "label": "cat"} for number in range(5)],
        {"file_name": "a.png", "label": "cat"},
        {"file_name": "a.png", "label": "dog"},
        {"file_name": "b.png", "label": ""},
        {"file_name": "", "label": "cat"},
    ]
    table = write_table(tmp_path / "t.csv", rows)
    table.write_text(table.read_text() + "too,many,cells\n")
    assert mistakes(photos, table) == [
        "more or fewer cells than the first line has (1): line 11",
        "in the table, but not in the folder (6): gone0.png, gone1.png, gone2.png and 3 more",
        "two labels for one image (1): a.png",
        "no label (1): b.png",
        "in the folder, but not in the table (1): sub/c.jpg",
    ]
    (lost, *_) = mistakes(photos, write_table(tmp_path / "t.csv", rows[5:]))
    assert lost == "two labels for one image (1): a.png"
    (lost, *_) = mistakes(photos, write_table(tmp_path / "t.csv", rows[8:]))
    assert lost == "in the table, but not in the folder (1): row 1, which names no file"


def test_a_column_that_is_not_there_is_one_of_them(photos, tmp_path):
    table = write_table(tmp_path / "t.csv", ROWS[:2])
    assert mistakes(photos, table, label_column="finding") == [
        "no column 'finding' (it has label, age): give label_column=...",
        "in the folder, but not in the table (1): sub/c.jpg",
    ]
    bare = write_table(tmp_path / "t.csv", [{"file_name": row["file_name"]} for row in ROWS])
    assert mistakes(photos, bare) == ["no column 'label' (it has nothing but names)"]


def test_an_image_of_a_kind_that_is_not_read_is_no_mistake_of_the_table(photos, tmp_path):
    (photos / "d.gif").write_bytes(b"GIF89a")
    rows = [*ROWS, {"file_name": "d.gif", "label": "cat", "age": 1}]
    source = open_source(photos, labels=write_table(tmp_path / "t.csv", rows))
    assert told(source) == LABELS
    assert source.unread == (f"{photos}/d.gif",)  # so that it is refused with all other bad images
    rows.append({"file_name": "e.gif", "label": "cat", "age": 1})
    assert mistakes(photos, write_table(tmp_path / "t.csv", rows)) == [
        "in the table, but not in the folder (1): e.gif",
        "of a kind that cannot be read (1): d.gif: convert to PNG",
    ]


def test_a_name_without_its_ending_means_the_image_that_can_be_read(photos, tmp_path):
    (photos / "a.gif").write_bytes(b"GIF89a")
    rows = [{**row, "file_name": Path(row["file_name"]).stem} for row in ROWS]
    assert told(open_source(photos, labels=write_table(tmp_path / "t.csv", rows))) == LABELS


def test_the_same_row_twice_is_no_mistake_and_a_name_for_two_files_is(photos, tmp_path):
    assert told(open_source(photos, labels=write_table(tmp_path / "t.csv", [*ROWS, ROWS[0]]))) == LABELS
    assert mistakes(photos, write_table(tmp_path / "t.csv", [*ROWS, {**ROWS[0], "age": 62}])) == [
        "two rows for one image (1): a.png"
    ]
    save_image(photos / "sub" / "a.jpg", np.zeros((4, 4), np.uint8))
    rows = [*ROWS, {"file_name": "a", "label": "cat", "age": 1}]
    assert mistakes(photos, write_table(tmp_path / "t.csv", rows)) == [
        "several files of that name (1): a",
        "in the folder, but not in the table (1): sub/a.jpg",
    ]


@pytest.mark.parametrize("label", [0.5, [1], {"x": 1}, "\ud800"])
def test_labels_of_other_kinds(photos, tmp_path, label):
    table = write_table(tmp_path / "t.jsonl", [*ROWS[:2], {**ROWS[2], "label": label}])
    assert mistakes(photos, table) == ["a label that is neither text nor a whole number (1): sub/c.jpg"]


def test_text_of_a_table_cannot_steer_a_terminal(photos, tmp_path):
    rows = [*ROWS, {"file_name": "\x1b[2J\u202e" + "x" * 200, "label": "cat", "age": 0}]
    (line,) = mistakes(photos, write_table(tmp_path / "t.jsonl", rows))
    assert line.isprintable()
    assert len(line) < 160


UNREADABLE = {
    "t.csv": {
        "file_name,label\n": "does not fit",
        "": "is empty: give it a first line",
        "a,b\n1,2\n": "has no column that says which file a row is about (it has a, b): call it file_name",
        "file_name,label,label\n": "has two columns called label: rename one of them",
        'file_name,label\na.png,"x\n': "cannot be read as a table: line ",
        ",".join(map(str, range(2000))) + "\n": "has more than 1024 columns",
    },
    "t.jsonl": {
        '{"file_name": "a.png"': "line 1: it is not JSON: correct it",
        "[1]\n": "line 1: it is not a JSON object",
        "[" * 100_000: "line 1: it is not JSON",
    },
    "t.parquet": {"PAR1": "is not a readable Parquet file"},
    "t.xlsx": {"x": "is not a table of labels: give a file that ends in .csv, .tsv, .jsonl, .parquet"},
}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [(name, content, reason) for name, cases in UNREADABLE.items() for content, reason in cases.items()],
    ids=lambda value: value[:20],
)
def test_tables_that_cannot_be_read(photos, tmp_path, name, content, reason):
    (tmp_path / name).write_text(content)
    with pytest.raises(SourceError) as caught:
        open_source(photos, labels=tmp_path / name)
    assert reason in str(caught.value)
    assert str(tmp_path / name) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_table_in_another_encoding_and_one_that_is_not_there(photos, tmp_path):
    (tmp_path / "t.csv").write_bytes("file_name,label\na.png,Grün\n".encode("cp1252"))
    with pytest.raises(SourceError, match=r"t\.csv is not text in UTF-8: save it as 'CSV UTF-8'"):
        open_source(photos, labels=tmp_path / "t.csv")
    with pytest.raises(SourceError, match=r"u\.csv cannot be read: it does not exist"):
        open_source(photos, labels=tmp_path / "u.csv")


def test_tables_with_more_rows_than_a_folder_has_files(photos, tmp_path, monkeypatch):
    monkeypatch.setattr("mole.sources.table_files.MAX_TABLE_ROWS", 2)
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        with pytest.raises(SourceError, match=f"{name} has more than 2 rows: split it"):
            open_source(photos, labels=write_table(tmp_path / name))


def test_two_tables_in_one_folder(photos):
    write_table(photos / "metadata.csv")
    write_table(photos / "metadata.jsonl")
    with pytest.raises(
        SourceError, match=r"metadata\.jsonl and metadata\.csv lie in one folder: remove one"
    ):
        open_source(photos)


def test_tables_and_class_folders_do_not_mix(tmp_path):
    for name in ("train/a.png", "test/cat/a.png"):
        save_image(tmp_path / "photos" / name, np.zeros((4, 4), np.uint8))
    write_table(tmp_path / "photos" / "train" / "metadata.csv", [{"file_name": "a.png", "label": "cat"}])
    with pytest.raises(SourceError, match=r"test/cat/a\.png is in no table of labels, and others are"):
        open_source(tmp_path / "photos")


def test_without_labels_a_table_is_not_looked_at_for_them(photos):
    """As `morph` does: images of requests need no labels, and a table of some of them is no hindrance."""
    write_table(photos / "metadata.csv", [{**ROWS[0], "label": ""}])
    source = open_source(photos, labels=False)
    assert (source.classes, source.splits["train"].labels) == (None, None)
    assert source.splits["train"].extra["age"] == [61, None, None]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("file_name,label\na.png,gr\u00fcn\n".encode("latin-1"), "is not text in UTF-8"),
        (b'file_name,label\na.png,"x\n', "cannot be read as a table"),
    ],
)
def test_a_table_that_cannot_be_read_stops_only_those_who_want_labels(photos, content, reason):
    (photos / "metadata.csv").write_bytes(content)
    with pytest.raises(SourceError, match=reason):
        open_source(photos)
    (remark,) = open_source(photos, labels=False).remarks
    assert remark.startswith(f"not used: {photos}/metadata.csv {reason}")


def test_two_tables_in_one_folder_stop_only_those_who_want_labels(photos):
    write_table(photos / "metadata.csv")
    write_table(photos / "metadata.jsonl")
    source = open_source(photos, labels=False)
    assert source.remarks == (
        f"not used: {photos}/metadata.jsonl and metadata.csv lie in one folder: remove one",
    )
    assert set(source.splits["train"].extra) == {"file_name"}


def test_a_row_without_a_name_is_about_no_file(tmp_path):
    """Not even about a DICOM file that has no UID of its own."""
    from dicom_files import STORED, save

    save(tmp_path / "scans" / "1.dcm", STORED, SOPInstanceUID="")
    (tmp_path / "t.csv").write_text("SOPInstanceUID,label\n,x\n")
    assert mistakes(tmp_path / "scans", tmp_path / "t.csv") == [
        "in the table, but not in the folder (1): row 1, which names no file",
        "in the folder, but not in the table (1): 1.dcm",
    ]


def test_what_is_not_for_such_data(photos, tmp_path):
    np.save(tmp_path / "d.npy", np.zeros((2, 4, 4), np.uint8))
    table = write_table(tmp_path / "t.csv")
    with pytest.raises(ParameterError, match=r"d\.npy is not a folder of image or DICOM files"):
        open_source(tmp_path / "d.npy", labels=table)
    with pytest.raises(ParameterError, match=r"d\.npy has no columns to choose labels from"):
        open_source(tmp_path / "d.npy", label_column="x")
    with pytest.raises(ParameterError, match="holds no DICOM files, and only those have a window and bits"):
        open_source(photos / "sub", window=(40, 400), bits=16)
    with pytest.raises(ParameterError, match="from a table or from a DICOM tag, not from both"):
        open_source(photos, labels=table, label_tag="Modality")
    with pytest.raises(SourceError, match="has no table with a column 'x': name one: give labels="):
        open_source(photos, label_column="x")
    with pytest.raises(ParameterError, match="the source is open already"):
        open_source(open_source(photos / "sub"), labels=table)


@pytest.mark.parametrize("window", [(40, 1), (40, float("nan")), (float("inf"), 400)])
def test_windows_that_cannot_be_used(window):
    with pytest.raises(ParameterError, match="cannot be used: give finite numbers, and a width above 1"):
        Reading(window=window)
