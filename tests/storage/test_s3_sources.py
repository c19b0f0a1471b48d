"""Sources on S3, against moto's server."""

import io
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from buckets import put, saved
from mole.errors import DeliveryError, SourceError
from mole.sources.inspection import inspect
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.sources.source import BadSampleError
from mole.storage.stores import open_store

# boto's own use of the clock, in versions of Python that call it deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")


@pytest.fixture
def pixels(rng):
    return rng.integers(0, 256, (3, 6, 7, 3), dtype=np.uint8)


def png(pixels):
    return saved(Image.fromarray(pixels).save, "PNG")


def test_a_folder_of_images(s3, pixels):
    for key, image in zip(("cat/1.png", "cat/2.png", "dog/1.png"), pixels, strict=True):
        put(s3, f"photos/{key}", png(image))
    put(s3, "photos/", b"")  # as the console makes a folder
    put(s3, "photos/.cache/3.png", b"")
    put(s3, "photos-of-others/1.png", b"")
    source = open_source("s3://bucket/photos")
    split = source.splits["train"]
    assert (source.classes, split.labels.tolist()) == (("cat", "dog"), [0, 0, 1])
    assert split.name_of(2) == "s3://bucket/photos/dog/1.png"
    for index, image in enumerate(pixels):
        np.testing.assert_array_equal(split.read(index).values, image)


def test_a_folder_that_has_changed_is_read_anew(s3, pixels):
    put(s3, "photos/1.png", png(pixels[0]))
    assert open_source("s3://bucket/photos").count == 1
    put(s3, "photos/2.png", png(pixels[1]))
    assert open_source("s3://bucket/photos").count == 2


def test_content_that_changed_in_place_is_noticed(s3, pixels):
    first, second = (saved(Image.fromarray(image).save, "BMP") for image in pixels[:2])
    assert len(first) == len(second)
    put(s3, "photos/1.bmp", first)
    before = open_source("s3://bucket/photos").fingerprint
    assert open_source("s3://bucket/photos").fingerprint == before
    put(s3, "photos/1.bmp", second)
    assert open_source("s3://bucket/photos").fingerprint != before


def test_a_new_folder_next_to_one_that_was_read(s3, pixels):
    put(s3, "photos/a/x/1.png", png(pixels[0]))
    assert open_source("s3://bucket/photos").count == 1
    put(s3, "photos/b/1.png", png(pixels[1]))
    assert open_source("s3://bucket/photos/b").count == 1


def test_files(s3, pixels):
    put(s3, "x.npy", saved(np.save, pixels))
    put(s3, "d.npz", saved(np.savez, x_train=pixels, y_train=np.arange(3)))
    table = pa.table({"image": [png(image) for image in pixels], "label": [2, 0, 1]})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    put(s3, "tables/train-00000-of-00001.parquet", sink.getvalue())
    expected = {
        "x.npy": None,
        "d.npz": [0, 1, 2],
        "tables": [2, 0, 1],
        "tables/train-00000-of-00001.parquet": [2, 0, 1],
    }
    for path, labels in expected.items():
        split = open_source(f"s3://bucket/{path}").splits["train"]
        assert (split.labels if labels is None else split.labels.tolist()) == labels
        np.testing.assert_array_equal(split.read(1).values, pixels[1])


def test_a_saved_dataset(s3, pixels):
    table = pa.table({"image": [png(image) for image in pixels]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    put(s3, "d/data-00000-of-00001.arrow", sink.getvalue())
    put(s3, "d/state.json", b'{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    np.testing.assert_array_equal(open_source("s3://bucket/d").splits["train"].read(2).values, pixels[2])


def test_dicom_files(s3):
    pydicom = pytest.importorskip("pydicom", reason="needs the extra 'dicom'")
    local = Path(pydicom.__file__).parent / "data" / "test_files" / "rtdose.dcm"
    put(s3, "scans/ill/scan", local.read_bytes())
    there, here = open_source("s3://bucket/scans").splits["train"], open_source(str(local)).splits["train"]
    assert there.labels.tolist() == [0] * 15
    assert there.name_of(3) == "s3://bucket/scans/ill/scan (frame 3)"
    np.testing.assert_array_equal(there.read(3).values, here.read(3).values)


@pytest.mark.parametrize("path", ["bucket/nothing", "no-such-bucket/photos"])
def test_a_source_that_is_not_there(s3, path):
    with pytest.raises(SourceError, match=f"^s3://{path} does not exist"):
        open_source(f"s3://{path}")


def test_a_file_that_vanished_is_a_bad_sample(s3, pixels):
    put(s3, "photos/1.png", png(pixels[0]))
    split = open_source("s3://bucket/photos").splits["train"]
    s3.delete_object(Bucket="bucket", Key="photos/1.png")
    with pytest.raises(
        BadSampleError, match=r"^s3://bucket/photos/1.png cannot be used: cannot be read: \S"
    ) as caught:
        split.read(0)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there(s3, monkeypatch):
    monkeypatch.setitem(
        fsspec.config.conf,
        "s3",
        {"endpoint_url": "http://127.0.0.1:9", "config_kwargs": {"retries": {"max_attempts": 0}}},
    )
    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "retries", 1)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(SourceError, match=r"^s3://bucket/photos cannot be read: .*127\.0\.0\.1:9"):
        open_source("s3://bucket/photos")
    with pytest.raises(DeliveryError, match=r"^s3://bucket/delivery cannot be listed: .*127\.0\.0\.1:9"):
        open_store("s3://bucket/delivery").names()


def test_a_folder_of_images_is_judged_by_the_ends_of_its_files(s3, rng):
    content = saved(Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save, format="PNG")
    for index, part in enumerate((content, content, content[:-30], b"")):
        put(s3, f"photos/{index}.png", part)
    found = inspect(open_source("s3://bucket/photos"), Preparation((3, 8, 8)))
    assert [problem.first.name for problem in found.problems] == [
        "s3://bucket/photos/2.png",
        "s3://bucket/photos/3.png",
    ]
