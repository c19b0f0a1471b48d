"""Data sets that Hugging Face's `datasets` saved: real ones, with the pixels that went into them."""

import json

import numpy as np
import pytest
from PIL import Image

from image_tables import (
    ROWS,
    assert_pixels,
    refusal,
)
from mole.sources.opening import open_source


@pytest.fixture
def pixels(rng):
    return rng.integers(0, 256, (ROWS, 6, 7, 3), dtype=np.uint8)


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    found.disable_progress_bars()
    return found


@pytest.fixture
def saved(datasets, pixels):
    """A data set with class names, from which the tests save what they need."""
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "site": datasets.Value("string"),
        }
    )
    images = [Image.fromarray(image) for image in pixels]
    columns = {"image": images, "label": [1, 0, 0, 1], "site": list("abcd")}
    return datasets.Dataset.from_dict(columns, features=features)


def test_a_saved_dataset(tmp_path, saved, pixels):
    saved.save_to_disk(tmp_path / "d", num_shards=2)
    source = open_source(str(tmp_path / "d"))
    split = source.splits["train"]
    assert (source.kind, source.classes, split.labels.tolist()) == (
        "saved data set",
        ("cat", "dog"),
        [1, 0, 0, 1],
    )
    assert split.extra["site"].to_pylist() == list("abcd")
    assert_pixels(split, pixels)


def test_a_saved_dataset_dict(tmp_path, datasets, saved, pixels):
    parts = {"train": saved.select(range(3)), "validation": saved.select([3])}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "d")
    source = open_source(str(tmp_path / "d"))
    assert source.classes == ("cat", "dog")
    assert {name: split.labels.tolist() for name, split in source.splits.items()} == {
        "train": [1, 0, 0],
        "validation": [1],
    }
    assert_pixels(source.splits["train"], pixels[:3])
    assert_pixels(source.splits["validation"], pixels[3:])


def test_a_dataset_with_its_rows_in_another_order(tmp_path, saved, pixels):
    saved.select([2, 0]).save_to_disk(tmp_path / "d")
    assert_pixels(open_source(str(tmp_path / "d")).splits["train"], pixels[[2, 0]])


def test_arrays_in_a_saved_dataset(tmp_path, datasets, pixels):
    features = datasets.Features({"image": datasets.Array3D((6, 7, 3), "uint8")})
    datasets.Dataset.from_dict({"image": list(pixels)}, features=features).save_to_disk(tmp_path / "d")
    assert_pixels(open_source(str(tmp_path / "d")).splits["train"], pixels)


def test_cached_work_is_no_data(tmp_path, saved):
    saved.save_to_disk(tmp_path / "d")
    data = next((tmp_path / "d").glob("data-*.arrow"))
    (tmp_path / "d" / "cache-1234.arrow").write_bytes(data.read_bytes())
    assert open_source(str(tmp_path / "d")).count == ROWS


def test_parquet_that_datasets_wrote(tmp_path, saved, pixels):
    saved.to_parquet(tmp_path / "train.parquet")
    source = open_source(str(tmp_path))
    assert source.classes == ("cat", "dog")
    assert_pixels(source.splits["train"], pixels)


def test_damaged_saved_datasets(tmp_path, saved):
    folder = tmp_path / "d"
    saved.save_to_disk(folder)
    data = next(folder.glob("data-*.arrow"))
    data.write_bytes(data.read_bytes()[:-300])
    assert "not a readable Arrow file" in refusal(folder, named=data)
    data.unlink()
    assert "not a readable Arrow file" in refusal(folder, named=data)
    for state in ("{", "[]", "{}", json.dumps({"_data_files": [{"filename": "../elsewhere.arrow"}]})):
        (folder / "state.json").write_text(state)
        assert "is damaged" in refusal(folder, named=folder / "state.json")
