"""Parquet files: real ones, with the pixels that went into them."""

import json
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from image_tables import (
    ROWS,
    assert_pixels,
    fixed_lists,
    large_bytes,
    nested_lists,
    png,
    raw_bytes,
    refusal,
    structs,
    tensors,
    write,
)
from mole.errors import SourceError
from mole.sources.opening import open_source
from mole.sources.source import BadSampleError


@pytest.fixture
def pixels(rng):
    return rng.integers(0, 256, (ROWS, 6, 7, 3), dtype=np.uint8)


@pytest.mark.parametrize("column", [structs, raw_bytes, large_bytes, tensors, nested_lists, fixed_lists])
def test_parquet(tmp_path, pixels, column):
    path = tmp_path / "d.parquet"
    write(path, image=column(pixels), label=[3, 0, 2, 1], site=list("abcd"))
    source = open_source(str(path))
    split = source.splits["train"]
    assert (source.kind, source.classes, split.labels.tolist()) == ("parquet", None, [3, 0, 2, 1])
    assert {name: values.to_pylist() for name, values in split.extra.items()} == {"site": list("abcd")}
    assert_pixels(split, pixels)
    assert split.name_of(1) == f"row 1 of {path} (train)"


def test_tensors_with_channels_first(tmp_path, pixels):
    chw = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    write(tmp_path / "d.parquet", image=tensors(chw))
    values, axes = open_source(str(tmp_path / "d.parquet")).splits["train"].read(2)
    assert axes == "chw"
    np.testing.assert_array_equal(values, chw[2])


def test_a_folder_of_parquet_files(tmp_path, pixels):
    write(tmp_path / "data" / "train-00000-of-00002.parquet", image=structs(pixels[:1]), label=[1])
    write(tmp_path / "data" / "train-00001-of-00002.parquet", image=structs(pixels[1:3]), label=[2, 3])
    write(tmp_path / "data" / "test-00000-of-00001.parquet", image=structs(pixels[3:]), label=[0])
    source = open_source(str(tmp_path))
    assert source.splits["train"].labels.tolist() == [1, 2, 3]
    assert_pixels(source.splits["train"], pixels[:3])
    assert_pixels(source.splits["test"], pixels[3:])


LONG = [4711000, 4711001, 4711000, 4711002]  # patients' numbers


def test_long_numbers_are_names_as_they_are_in_other_tables(tmp_path, pixels):
    write(tmp_path / "d" / "train.parquet", image=structs(pixels), label=LONG)
    write(tmp_path / "d" / "test.parquet", image=structs(pixels), label=[7, 4711002, 7, 7])
    source = open_source(tmp_path / "d")
    assert source.classes == ("4711000", "4711001", "4711002", "7")
    assert source.splits["train"].labels.tolist() == [0, 1, 0, 2]
    assert source.splits["test"].labels.tolist() == [3, 2, 3, 3]
    largest = pa.array([2**63 + 5, 0, 0, 1], pa.uint64())
    write(tmp_path / "e.parquet", image=structs(pixels), label=largest)
    assert open_source(tmp_path / "e.parquet").classes == ("0", "1", str(2**63 + 5))


def test_numbers_of_four_digits_stay_numbers(tmp_path, pixels):
    write(tmp_path / "d.parquet", image=structs(pixels), label=[9999, -1, -100, 0])
    source = open_source(tmp_path / "d.parquet")
    assert (source.classes, source.splits["train"].labels.tolist()) == (None, [9999, -1, -100, 0])


@pytest.mark.parametrize("count", [3, 20_000])
def test_a_number_that_names_a_class_is_no_patients(tmp_path, pixels, count):
    names = [f"c{number}" for number in range(count)]
    about = json.dumps({"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}})
    table = pa.table({"image": structs(pixels), "label": [12345, 0, 1, 2]})
    pq.write_table(table.replace_schema_metadata({"huggingface": about}), tmp_path / "d.parquet")
    source = open_source(tmp_path / "d.parquet")
    if count > 12345:
        assert (len(source.classes), source.splits["train"].labels.tolist()) == (count, [12345, 0, 1, 2])
    else:
        assert source.classes == ("0", "1", "12345", "2")


@pytest.mark.parametrize("labels", [[None] * ROWS, [1, None, 2, 3], ["x", "", "y", "z"], [0.5] * ROWS])
def test_who_wants_no_labels_is_not_stopped_by_them(tmp_path, pixels, labels):
    """As the images of requests: their column of labels may be empty."""
    write(tmp_path / "d.parquet", image=structs(pixels), label=labels, site=list("abcd"))
    with pytest.raises(SourceError, match="label"):
        open_source(tmp_path / "d.parquet")
    source = open_source(tmp_path / "d.parquet", labels=False)
    assert (source.classes, source.splits["train"].labels) == (None, None)
    assert list(source.splits["train"].extra) == ["site"]
    assert_pixels(source.splits["train"], pixels)


def test_only_the_label_in_use_is_no_further_column(tmp_path, pixels):
    write(tmp_path / "d.parquet", image=structs(pixels), label=[0] * ROWS, target=[7] * ROWS)
    assert list(open_source(str(tmp_path / "d.parquet")).splits["train"].extra) == ["target"]


def test_a_large_file_is_not_in_memory_and_leaves_no_copy(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    images = rng.integers(0, 256, (400, 100, 100, 3), dtype=np.uint8)
    table = pa.table({"image": tensors(images), "image.id": range(400), "site": ["a"] * 400})
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=50)
    del table
    before = pa.total_allocated_bytes()
    split = open_source(str(tmp_path / "d.parquet")).splits["train"]
    for index in rng.permutation(400)[:50].tolist():
        np.testing.assert_array_equal(split.read(index).values, images[index])
    assert pa.total_allocated_bytes() - before < images.nbytes / 10
    assert list((tmp_path / "scratch").iterdir()) == []  # the copy on disk has no name
    assert split.extra["image.id"][7].as_py() == 7


def test_a_column_is_read_when_it_is_asked_for(tmp_path, pixels):
    write(tmp_path / "d.parquet", image=structs(pixels), site=list("abcd"))
    source = open_source(str(tmp_path / "d.parquet"))
    (tmp_path / "d.parquet").unlink()
    split = source.splits["train"]
    assert (len(split), list(split.extra)) == (ROWS, ["site"])
    with pytest.raises(SourceError, match=r"d\.parquet cannot be read"):
        split.read(0)


def test_no_room_for_the_copy_is_one_sentence(tmp_path, pixels, monkeypatch):
    write(tmp_path / "d.parquet", image=structs(pixels))
    split = open_source(str(tmp_path / "d.parquet")).splits["train"]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(SourceError, match="nowhere: it does not exist; set TMPDIR"):
        split.read(0)


def test_the_image_is_found_by_name_among_several_columns(tmp_path, pixels):
    digests = pa.array([b"x"] * ROWS)
    boxes = pa.array([[[1.0, 2.0]]] * ROWS)
    write(tmp_path / "d.parquet", digest=digests, boxes=boxes, image=structs(pixels))
    assert_pixels(open_source(str(tmp_path / "d.parquet")).splits["train"], pixels)


UNFIT = {
    "no images": ({"label": [1]}, "no column of images"),
    "lists that are no images": ({"objects": [[{"box": 1}]], "words": [["a"]]}, "no column of images"),
    "two columns": (
        {"left": [b"1"], "right": [b"2"]},
        "several columns that could be images (left, right)",
    ),
    "labels with fractions": (
        {"image": [b"1"], "label": [0.5]},
        "'label' must hold text or a whole number",
    ),
    "labels with gaps": (
        {"image": [b"1", b"2"], "label": [1, None]},
        "'label' must hold text or a whole number",
    ),
    "empty labels": ({"image": [b"1", b"2"], "label": ["cat", ""]}, "row 1 has an empty 'label'"),
    "no rows": ({"image": pa.array([], pa.binary())}, "has no images"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_unfit_parquet(tmp_path, case):
    columns, reason = UNFIT[case]
    write(tmp_path / "d.parquet", **columns)
    assert reason in refusal(tmp_path / "d.parquet")


def test_parquet_files_that_differ(tmp_path, pixels):
    write(tmp_path / "train-0.parquet", image=structs(pixels), label=[0] * ROWS)
    write(tmp_path / "train-1.parquet", image=structs(pixels))
    assert "have different columns" in refusal(tmp_path)


@pytest.mark.parametrize("keep", [0, 3, -20])
def test_cut_off_parquet(tmp_path, pixels, keep):
    path = tmp_path / "d.parquet"
    write(path, image=structs(pixels))
    path.write_bytes(path.read_bytes()[:keep])
    assert "not a readable Parquet file" in refusal(path)
    assert "not a readable Parquet file" in refusal(tmp_path, named=path)


BAD_CELLS = {
    "an empty cell": pa.array([None], pa.struct({"bytes": pa.binary(), "path": pa.string()})),
    "only a path": pa.array(
        [{"bytes": None, "path": "1.png"}], pa.struct({"bytes": pa.binary(), "path": pa.string()})
    ),
    "no image": pa.array([b"hello"]),
    "cut off": pa.array([png(np.zeros((40, 40), np.uint8))[:50]]),
    "uneven": pa.array([[[1, 2], [3]]], pa.list_(pa.list_(pa.uint8()))),
    "gaps": pa.array([[[1, 2], [3, None]]], pa.list_(pa.list_(pa.uint8()))),
}


@pytest.mark.parametrize("case", BAD_CELLS)
def test_bad_cells_are_bad_samples(tmp_path, case):
    path = tmp_path / "d.parquet"
    write(path, image=BAD_CELLS[case])
    with pytest.raises(BadSampleError, match=f"^row 0 of {path} .train. cannot be used: it") as caught:
        open_source(str(path)).splits["train"].read(0)
    assert "\n" not in str(caught.value)
