"""Samples that cannot be used: named, or left out and remembered; and columns that are kept."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import mole
from deliveries import SMALL, contents, make_key, make_layer, unfinish
from mole.errors import DeliveryError, MoleWarning, ParameterError, SourceError
from mole.exchange.verify import verify
from mole.provider import local_engine
from mole.provider.deliver import deliver
from mole.provider.recover import recover
from mole.provider.recovered_forms import check_form
from mole.sources.opening import open_source
from mole.sources.source import BadSampleError
from mole.storage.stores import LocalStore


def test_images_of_other_kinds_stop_the_work_unless_they_are_skipped(tmp_path, rng):
    (tmp_path / "photos").mkdir()
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(tmp_path / "photos" / "1.png")
    (tmp_path / "photos" / "2.gif").write_bytes(b"GIF89a")
    source, store = open_source(str(tmp_path / "photos")), LocalStore(tmp_path / "out")
    with pytest.raises(SourceError, match=r"2\.gif cannot be used: it is of a kind .*, or leave it out"):
        deliver(source, make_layer(), make_key(), store, **SMALL)
    assert not (tmp_path / "out").exists()
    with pytest.warns(MoleWarning, match=r"left out: 1 image file of .* such as .*2\.gif"):
        made = deliver(source, make_layer(), make_key(), store, skip_bad=True)
    assert made.delivery.manifest.rows == 1


def test_images_of_several_number_types_are_warned_of_and_come_back_without_png_files(tmp_path, rng):
    layer = mole.FirstLayer.conv(rng.normal(size=(4, 1, 3, 3)), None, input_shape=(1, 8, 8), padding=1)
    key = mole.MorphKey.generate((1, 8, 8), insecure_seed=bytes(32))
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(5):
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(photos / f"{number}.png")
    plain = deliver(photos, layer, key, LocalStore(tmp_path / "plain"))  # a warning would be an error here
    check_form(plain.delivery, "images")
    Image.fromarray(rng.integers(0, 65536, (8, 8), dtype=np.uint16)).save(photos / "3.png")
    with pytest.warns(MoleWarning) as said:
        mixed = deliver(photos, layer, key, LocalStore(tmp_path / "mixed"))
    assert [str(one.message) for one in said] == [
        f"split 'train' has images of several number types: 4 of uint8 and 1 of uint16, such as "
        f"{photos}/3.png. They come back as numbers from 0 to 1, not as image files: convert them to one "
        "type if you want those"
    ]
    with pytest.raises(DeliveryError, match=r"cannot hold float32 of 1x8x8 \(as images of several number"):
        check_form(mixed.delivery, "images")


@pytest.fixture
def folder_with_a_bad_image(tmp_path, rng):
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for index in range(10):
            pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{index}.png")
    (tmp_path / "photos" / "cat" / "3.png").write_bytes(b"not an image")
    return open_source(str(tmp_path / "photos"))


def test_a_bad_image_stops_the_work_and_is_named(folder_with_a_bad_image, tmp_path):
    with pytest.raises(BadSampleError, match=r"cat/3\.png cannot be used"):
        deliver(folder_with_a_bad_image, make_layer(), make_key(), LocalStore(tmp_path / "out"), **SMALL)
    assert "manifest.json" not in contents(tmp_path / "out")


@pytest.fixture
def folder_with_a_damaged_image(folder_with_a_bad_image, tmp_path):
    """Its header is good, and its pixels cannot be decoded."""
    damaged = tmp_path / "photos" / "cat" / "3.png"
    damaged.write_bytes((tmp_path / "photos" / "cat" / "4.png").read_bytes())
    content = bytearray(damaged.read_bytes())
    start = content.index(b"IDAT") + 4
    content[start : start + 4] = b"\xff" * 4
    damaged.write_bytes(content)
    return open_source(str(tmp_path / "photos"))


def test_an_image_whose_header_is_good_gets_advice_too(folder_with_a_damaged_image, tmp_path):
    with pytest.raises(
        BadSampleError, match=r"cat/3\.png cannot be used: .* leave it out: give skip_bad=True"
    ):
        deliver(folder_with_a_damaged_image, make_layer(), make_key(), tmp_path / "out")


def test_the_call_that_leaves_it_out_resumes(folder_with_a_damaged_image, tmp_path, monkeypatch):
    monkeypatch.setattr(local_engine, "processors", lambda: 1)
    for seed in range(10):  # in one of five orders, the damaged image lies in the first shard
        out = tmp_path / f"out-{seed}"
        call = (folder_with_a_damaged_image, make_layer(), make_key(seed), out)
        with pytest.raises(BadSampleError):
            deliver(*call, rows_per_shard=4)
        shards = {path: path.stat().st_mtime_ns for path in (out / "data").glob("*.parquet")}
        if shards:
            break
    assert shards
    made = deliver(*call, rows_per_shard=4, skip_bad=True)
    assert made.delivery.manifest.rows == 19
    assert all(path.stat().st_mtime_ns == before for path, before in shards.items())


def test_bad_images_can_be_skipped(folder_with_a_bad_image, tmp_path):
    store, key = LocalStore(tmp_path / "out"), make_key()
    options = {"rows_per_shard": 6, "skip_bad": True, "keep": ("file_name",)}
    delivered = deliver(folder_with_a_bad_image, make_layer(), key, store, **options)
    assert [error.name.rsplit("/", 2)[-2:] for error in delivered.skipped] == [["cat", "3.png"]]
    assert delivered.delivery.manifest.splits["train"].rows == 19
    assert all(check.holds for check in verify(store))
    recovered = recover(store, key)
    names = [f"{label}/{i}.png" for label in ("cat", "dog") for i in range(10)]
    names.remove("cat/3.png")
    truth = [np.asarray(Image.open(tmp_path / "photos" / name)) for name in names]
    assert np.array_equal(recovered["x_train"].transpose(0, 2, 3, 1), truth)
    assert recovered["y_train"].tolist() == [0] * 9 + [1] * 10
    assert delivered.delivery.manifest.classes == ("cat", "dog")


@pytest.fixture
def folder_of_bad_images(tmp_path):
    (tmp_path / "bad").mkdir()
    for index in range(5):
        (tmp_path / "bad" / f"{index}.png").write_bytes(b"not an image")
    return open_source(str(tmp_path / "bad"))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("layer_dtype", ["float32", None])
def test_nothing_usable_is_refused_and_leaves_nothing(folder_of_bad_images, tmp_path, dtype, layer_dtype):
    options = {"dtype": dtype, "layer_dtype": layer_dtype, "skip_bad": True, "rows_per_shard": 2}
    with pytest.raises(SourceError, match=r"not one of 5 samples can be used.*0\.png cannot be used"):
        deliver(folder_of_bad_images, make_layer(), make_key(), LocalStore(tmp_path / "out"), **options)
    assert not (tmp_path / "out").exists()


def test_a_split_may_lose_all_its_samples(folder_with_a_bad_image, tmp_path):
    (tmp_path / "photos" / "cat").rename(tmp_path / "photos" / "train")
    (tmp_path / "photos" / "dog").rename(tmp_path / "photos" / "test")
    for index in range(10):
        (tmp_path / "photos" / "test" / f"{index}.png").write_bytes(b"not an image")
    store = LocalStore(tmp_path / "out")
    deliver(open_source(str(tmp_path / "photos")), make_layer(), make_key(), store, skip_bad=True)
    assert all(check.holds for check in verify(store))
    recovered = recover(store, make_key())
    assert (len(recovered["x_train"]), len(recovered["x_test"])) == (9, 0)


def test_skipped_samples_are_remembered(folder_with_a_bad_image, tmp_path):
    """After a repeat, and after work that went on: what was left out is told by what is there."""
    store, options = LocalStore(tmp_path / "out"), {"rows_per_shard": 6, "skip_bad": True}
    first = deliver(folder_with_a_bad_image, make_layer(), make_key(), store, **options)
    assert len(first.skipped) == 1
    again = deliver(folder_with_a_bad_image, make_layer(), make_key(), store, **options)
    assert [str(bad) for bad in again.skipped] == [str(bad) for bad in first.skipped]
    unfinish(first.delivery)
    resumed = deliver(folder_with_a_bad_image, make_layer(), make_key(), store, **options)
    assert [str(bad) for bad in resumed.skipped] == [str(bad) for bad in first.skipped]
    assert b"3.png" not in b"".join(contents(tmp_path / "out").values())


def test_columns_leave_only_if_they_are_named(folder_with_a_bad_image, tmp_path):
    options = {"skip_bad": True, "keep": ("file_name",)}
    deliver(folder_with_a_bad_image, make_layer(), make_key(), LocalStore(tmp_path / "out"), **options)
    table = pq.read_table(tmp_path / "out" / "data" / "train-00000-of-00001.parquet")
    assert sorted(table["file_name"].to_pylist())[:2] == ["0.png", "0.png"]
    for keep, words in (
        (("patient",), "no column 'patient' to keep: it has file_name"),
        ("file_name", "columns to keep are a list"),
    ):
        with pytest.raises(ParameterError, match=words):
            deliver(
                folder_with_a_bad_image, make_layer(), make_key(), LocalStore(tmp_path / "two"), keep=keep
            )
