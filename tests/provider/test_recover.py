"""What the provider gets back: its samples in their own number type, and which row was which."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import mole
from chosen_layout import cut
from deliveries import make_key, make_layer, write_npz
from mole.errors import DeliveryError, MoleWarning
from mole.exchange.manifest import Manifest
from mole.provider.deliver import deliver
from mole.provider.recover import recover, row_table
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

PLAIN = mole.FirstLayer.conv(make_layer().weight, None, input_shape=(3, 8, 8), padding=1)


def delivered(tmp_path, images, layer, **options):
    """A delivery of some images, (n, 3, 8, 8), as train, with a test split of 8 bits."""
    np.savez(tmp_path / "d.npz", x_train=images, x_test=np.full((2, 3, 8, 8), 7, np.uint8))
    store = LocalStore(tmp_path / "out")
    deliver(open_source(str(tmp_path / "d.npz")), layer, make_key(), store, **options)
    return store


@pytest.mark.parametrize("layer", [make_layer(), PLAIN], ids=["normalised", "as they are"])
@pytest.mark.parametrize("numbers", ["uint8", "uint16", ">u2"])
def test_whole_numbers_come_back_exactly(tmp_path, rng, numbers, layer):
    dtype = np.dtype(numbers)
    images = rng.integers(0, np.iinfo(dtype).max, (40, 3, 8, 8), endpoint=True).astype(dtype)
    images[0], images[1] = 0, np.iinfo(dtype).max
    store = delivered(tmp_path, images, layer, rows_per_shard=16)
    found = recover(store, make_key())
    assert (found["x_train"].dtype, found["x_test"].dtype) == (dtype.newbyteorder("="), np.uint8)
    assert np.array_equal(found["x_train"], images)
    assert (found["x_test"] == 7).all()
    splits = Manifest.read(store).splits
    assert (splits["train"].source_dtype, splits["test"].source_dtype) == (dtype.name, "uint8")


@pytest.mark.parametrize("numbers", ["uint32", "uint64"])
def test_larger_ones_to_the_digits_of_32_bit_floats(tmp_path, rng, numbers):
    top = np.iinfo(numbers).max
    images = rng.integers(0, top, (10, 3, 8, 8), endpoint=True, dtype=numbers)
    images[0] = top
    found = recover(delivered(tmp_path, images, PLAIN), make_key())["x_train"]
    assert found.dtype == numbers
    assert np.allclose(found.astype(float) / top, images.astype(float) / top, atol=1e-5)


@pytest.mark.parametrize("numbers", ["float16", "float32", "float64"])
def test_floats_come_back_unclipped(tmp_path, rng, numbers):
    images = rng.normal(size=(30, 3, 8, 8)).astype(numbers) * 100
    found = recover(delivered(tmp_path, images, PLAIN), make_key())["x_train"]
    assert found.dtype == np.float32
    assert images.min() < -100
    assert np.allclose(found, images, rtol=1e-4, atol=1e-3)


def test_samples_of_several_types_come_back_from_0_to_1(tmp_path, rng):
    layer = mole.FirstLayer.conv(np.ones((2, 1, 3, 3)), None, input_shape=(1, 8, 8))
    key = mole.MorphKey.generate((1, 8, 8), insecure_seed=bytes(32), **cut())
    eight = rng.integers(0, 256, (8, 8), dtype=np.uint8)
    sixteen = rng.integers(0, 65536, (8, 8), dtype=np.uint16)
    (tmp_path / "scans").mkdir()
    Image.fromarray(eight).save(tmp_path / "scans" / "1.png")
    Image.fromarray(sixteen).save(tmp_path / "scans" / "2.png")
    store = LocalStore(tmp_path / "out")
    with pytest.warns(MoleWarning, match="several number types: 1 of uint8 and 1 of uint16"):
        deliver(open_source(str(tmp_path / "scans")), layer, key, store, rows_per_shard=1)
    found = recover(store, key)["x_train"]
    assert found.dtype == np.float32
    assert np.allclose(found[:, 0], [eight / 255, sixteen / 65535], atol=1e-5)


def test_row_ids_stand_in_the_order_of_the_source(tmp_path):
    source = open_source(str(write_npz(tmp_path / "data.npz")))
    store, key = LocalStore(tmp_path / "out"), make_key()
    deliver(source, make_layer(), key, store, rows_per_shard=16)
    found = recover(store, key)
    shards = pq.read_table(tmp_path / "out" / "data", partitioning=None)
    label_of = dict(zip(shards["row_id"].to_pylist(), shards["label"].to_pylist(), strict=True))
    for split in ("train", "test"):
        labels = [label_of[row_id] for row_id in found[f"row_id_{split}"].tolist()]
        assert labels == source.splits[split].labels.tolist()


def test_a_split_without_shards_comes_back_empty(tmp_path):
    """No delivery of this program has one; another's may."""
    store = delivered(tmp_path, np.zeros((3, 3, 8, 8), np.uint8), PLAIN)
    manifest = Manifest.read(store)
    splits = {**manifest.splits, "more": replace(manifest.splits["test"], samples=0, rows=0, shards=0)}
    replace(manifest, splits=splits).write(store, store.names() - {"manifest.json"})
    found = recover(store, make_key())
    assert (found["x_more"].shape, found["x_more"].dtype) == ((0, 3, 8, 8), np.uint8)
    assert len(found["row_id_more"]) == 0
    assert len(found["x_train"]) == 3
    assert row_table(store, make_key()).num_rows == 5


@pytest.fixture
def photos(tmp_path, rng):
    """Images in a folder, one of them bad, and a delivery of the others."""
    for index in range(12):
        path = tmp_path / "photos" / ("cat" if index % 2 else "dog") / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
    (tmp_path / "photos" / "cat" / "3.png").write_bytes(b"no image")
    source, store = open_source(str(tmp_path / "photos")), LocalStore(tmp_path / "out")
    deliver(source, make_layer(), make_key(), store, skip_bad=True, rows_per_shard=5)
    return source, store


def test_the_table_of_ids_joins_predictions_with_samples(photos):
    source, store = photos
    table = row_table(store, make_key(), source).to_pydict()
    assert list(table) == ["split", "index", "name", "row_id"]
    assert table["index"] == [0, 1, *range(3, 12)]  # the third, cat/3.png, was skipped
    assert table["name"] == [source.splits["train"].name_of(index) for index in table["index"]]
    rows = pq.read_table(store.folder / "data", partitioning=None).to_pydict()
    answers = dict(zip(rows["row_id"], rows["label"], strict=True))  # as if predicted without a mistake
    joined = {name: answers[row_id] for name, row_id in zip(table["name"], table["row_id"], strict=True)}
    assert joined == {name: int("/dog/" in name) for name in table["name"]}


def test_the_table_of_ids_needs_no_pixels_and_no_source(photos, monkeypatch):
    source, store = photos
    monkeypatch.setattr(type(source.splits["train"]), "read", None)
    assert row_table(store, make_key(), source).num_rows == 11
    assert row_table(store, make_key()).column_names == ["split", "index", "row_id"]


def test_another_source_or_key_gives_no_names(photos, tmp_path):
    _, store = photos
    other = open_source(str(write_npz(tmp_path / "data.npz")))
    with pytest.raises(DeliveryError, match="made from 12 samples in split 'train', and the data has 100"):
        row_table(store, make_key(), other)
    with pytest.raises(DeliveryError, match="use that key"):
        row_table(store, make_key(1))
