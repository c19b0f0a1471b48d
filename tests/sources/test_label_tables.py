"""Labels from a table: one that is named, or one that lies among the images as Hugging Face has it."""

import json
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mole.errors import ParameterError, SourceError
from mole.sources.opening import open_source
from mole.sources.reading import Reading
from source_files import save_image

LABELS = {"a.png": "cat", "b.png": "dog", "sub/c.jpg": "cat"}
ROWS = [{"file_name": name, "label": label, "age": age} for (name, label), age in
        zip(LABELS.items(), (61, 7, 30), strict=True)]  # fmt: skip


@pytest.fixture
def photos(tmp_path):
    for name in LABELS:
        save_image(tmp_path / "photos" / name, np.zeros((4, 4), np.uint8))
    return tmp_path / "photos"


def csv_of(rows, delimiter=",") -> str:
    lines = [list(rows[0]), *(row.values() for row in rows)]
    return "\n".join(delimiter.join(map(str, line)) for line in lines) + "\n"


def write_table(path, rows=ROWS):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    else:
        path.write_text(csv_of(rows, "\t" if path.suffix == ".tsv" else ","))
    return path


def told(source, split="train"):
    """The class of each file, by its path in the folder."""
    part = source.splits[split]
    names = source.classes or range(10_000)
    return {
        part.folder.inside(path): names[label] for path, label in zip(part.paths, part.labels, strict=True)
    }


def mistakes(photos, table, **options) -> list[str]:
    """The lines of the one message about a table."""
    with pytest.raises(SourceError) as caught:
        open_source(photos, labels=table, **options)
    assert caught.value.message == f"{table} does not fit the images of {photos}: correct this"
    assert str(caught.value).splitlines()[1:] == [f"  {line}" for line in caught.value.lines]
    return list(caught.value.lines)


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
        "no column 'finding': it has label, age",
        "in the folder, but not in the table (1): sub/c.jpg",
    ]


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
    with pytest.raises(SourceError, match=r"u\.csv cannot be read: No such file"):
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
