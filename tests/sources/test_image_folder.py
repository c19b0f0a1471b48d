"""Folders of images: splits and classes by the folders that files lie in."""

import numpy as np
import pytest

from mole.sources.opening import open_source
from source_files import only_sample, refusal, rgb, save_image


def test_class_folders_give_labels(tmp_path, rng):
    images = {("cat", "1.png"): rgb(rng), ("cat", "2.png"): rgb(rng), ("dog", "1.png"): rgb(rng)}
    for (name, file), pixels in images.items():
        save_image(tmp_path / name / file, pixels)
    source = open_source(str(tmp_path))
    assert (source.kind, source.classes, set(source.splits)) == ("image folder", ("cat", "dog"), {"train"})
    split = source.splits["train"]
    assert split.labels.tolist() == [0, 0, 1]
    assert split.extra["file_name"] == ["1.png", "2.png", "1.png"]
    for index, pixels in enumerate(images.values()):
        assert split.read(index).axes == "hwc"
        np.testing.assert_array_equal(split.read(index).values, pixels)
    assert split.name_of(2) == f"{tmp_path}/dog/1.png"


def test_split_folders_give_splits_with_the_same_classes(tmp_path, rng):
    for where in ("train/cat/1.png", "train/dog/1.png", "Test/dog/9.png", "Test/eel/9.png"):
        save_image(tmp_path / where, rgb(rng))
    source = open_source(str(tmp_path))
    assert source.classes == ("cat", "dog", "eel")
    assert {name: split.labels.tolist() for name, split in source.splits.items()} == {
        "train": [0, 1],
        "test": [1, 2],
    }


def test_a_split_spelled_in_two_ways_loses_nothing(tmp_path, rng):
    for where in ("train/cat/1.png", "Train/cat/2.png"):
        save_image(tmp_path / where, rgb(rng))
    assert open_source(str(tmp_path)).splits["train"].labels.tolist() == [0, 0]


def test_a_split_without_classes_does_not_take_the_labels_of_another(tmp_path, rng):
    for where in ("train/cat/1.png", "train/dog/1.png", "test/1.png"):
        save_image(tmp_path / where, rgb(rng))
    source = open_source(str(tmp_path))
    assert source.splits["train"].labels.tolist() == [0, 1]
    assert source.splits["test"].labels is None


@pytest.mark.parametrize("name", ["dev", "val", "valid", "validation"])
def test_a_third_split_is_known_by_its_name(tmp_path, rng, name):
    for split in ("train", "test", name):
        save_image(tmp_path / split / "cat" / "1.png", rgb(rng))
        save_image(tmp_path / split / "dog" / "1.png", rgb(rng))
    source = open_source(str(tmp_path))
    assert set(source.splits) == {"train", "test", name}
    assert source.classes == ("cat", "dog")


def test_a_class_may_be_called_dev(tmp_path, rng):
    for where in ("dev/1.png", "ops/1.png"):
        save_image(tmp_path / where, rgb(rng))
    assert open_source(str(tmp_path)).classes == ("dev", "ops")
    save_image(tmp_path / "alone" / "dev" / "1.png", rgb(rng))
    assert open_source(str(tmp_path / "alone")).classes == ("dev",)


@pytest.mark.parametrize(
    "folders", [("train", "test", "extra"), ("train/cat", "extra/cat"), ("train", "test/cat", "extra")]
)
def test_splits_and_classes_side_by_side_are_refused(tmp_path, rng, folders):
    for folder in folders:
        save_image(tmp_path / folder / "1.png", rgb(rng))
    message = refusal(tmp_path)
    assert "has folders named like splits" in message
    assert "next to others (extra)" in message


def test_images_of_other_kinds_are_named(tmp_path, rng):
    for where in ("cat/1.png", "cat/2.png"):
        save_image(tmp_path / where, rgb(rng))
    for name in ("3.GIF", "4.heic"):
        (tmp_path / "cat" / name).write_bytes(b"an image of another kind")
    (tmp_path / "notes.txt").write_text("no image")
    source = open_source(str(tmp_path))
    assert source.count == 2
    assert source.unread == (f"{tmp_path}/cat/3.GIF", f"{tmp_path}/cat/4.heic")


def test_a_class_may_be_called_train(tmp_path, rng):
    for where in ("train/1.png", "ship/1.png"):
        save_image(tmp_path / where, rgb(rng))
    source = open_source(str(tmp_path))
    assert (source.classes, source.splits["train"].labels.tolist()) == (("ship", "train"), [0, 1])


def test_a_flat_folder_has_no_labels(tmp_path, rng):
    save_image(tmp_path / "1.png", rgb(rng))
    source = open_source(str(tmp_path))
    assert source.classes is None
    assert source.splits["train"].labels is None


def test_images_in_and_out_of_class_folders_are_refused(tmp_path, rng):
    for where in ("cat/1.png", "preview.png"):
        save_image(tmp_path / where, rgb(rng))
    assert "put every image into one, or none" in refusal(tmp_path, named=tmp_path / "preview.png")


def test_hidden_files_are_left_out_and_links_followed(tmp_path, rng):
    pixels = rgb(rng)
    save_image(tmp_path / "elsewhere" / "1.png", pixels)
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "circle").symlink_to(folder)
    save_image(folder / ".cache" / "2.png", pixels)
    (folder / "cat" / "._1.png").write_bytes(b"a file that macOS makes")
    np.testing.assert_array_equal(only_sample(folder).values, pixels)


@pytest.mark.parametrize("name", ["a::b", "with space", "[x]*?", "percent%20", "ümlaut"])
def test_folders_of_any_name_are_opened(tmp_path, rng, name):
    pixels = rgb(rng)
    save_image(tmp_path / name / "1.png", pixels)
    np.testing.assert_array_equal(only_sample(tmp_path / name).values, pixels)


def test_relative_paths_and_file_urls(tmp_path, rng, monkeypatch):
    save_image(tmp_path / "photos" / "cat" / "1.png", rgb(rng))
    monkeypatch.chdir(tmp_path)
    for path in ("photos", "./photos/", "photos/../photos", f"file://{tmp_path}/photos"):
        assert open_source(path).classes == ("cat",)
