"""Deliveries: made, checked, undone; nothing lost, nothing twice, nothing told."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import mole
from chosen_layout import cut
from deliveries import SHAPE, SMALL, contents, make_key, make_layer, tensors, write_npz
from mole.errors import DeliveryError, ParameterError
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.recover import recover
from mole.provider.row_numbers import RowNumbers
from mole.scheme.layer_matrix import layer_matrix
from mole.scheme.shapes import roll, unroll
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore


@pytest.fixture
def source(tmp_path):
    return open_source(str(write_npz(tmp_path / "data.npz")))


@pytest.mark.parametrize(("dtype", "off_by"), [("float32", 0), ("float16", 1), ("int8", 8)])
def test_what_is_delivered_comes_back(source, tmp_path, dtype, off_by):
    store, key = LocalStore(tmp_path / "out"), make_key()
    deliver(source, make_layer(), key, store, dtype=dtype, rows_per_shard=16)
    assert all(check.holds for check in verify(store)), verify(store)
    recovered = recover(store, key)
    with np.load(tmp_path / "data.npz") as truth:
        for split in ("train", "test"):
            pixels = recovered[f"x_{split}"].transpose(0, 2, 3, 1).astype(int)
            assert np.abs(pixels - truth[f"x_{split}"]).max() <= off_by
            assert np.array_equal(recovered[f"y_{split}"], truth[f"y_{split}"])


def test_the_augmented_layer_gives_the_features_of_the_images(source, tmp_path):
    store, key, layer = LocalStore(tmp_path / "out"), make_key(), make_layer()
    rows = RowNumbers.of(deliver(source, layer, key, store, **SMALL).delivery, key, "test")
    table = pq.read_table(tmp_path / "out" / "data" / "test-00000-of-00002.parquet")
    morphed = tensors(table)
    features = mole.load(tmp_path / "out" / "augmented-layer.safetensors").features(morphed)
    with np.load(tmp_path / "data.npz") as truth:
        images = truth["x_test"][rows.order[:15]].transpose(0, 3, 1, 2)
    plain = layer.plain(images)
    expected = roll(unroll(plain) @ layer_matrix(layer), layer.output_shape)
    expected = (expected + layer.bias.reshape(-1, 1, 1))[:, key.channel_order(4)]
    assert np.allclose(features, expected, atol=1e-4)


def test_rows_leave_in_another_order_and_without_anything_else(source, tmp_path):
    folder, key = tmp_path / "out", make_key()
    made = deliver(source, make_layer(), key, LocalStore(folder), **SMALL)
    table = pq.read_table(folder / "data" / "train-00000-of-00007.parquet")
    assert table.column_names == ["row_id", "image", "label"]
    assert not np.array_equal(RowNumbers.of(made.delivery, key, "train").order, np.arange(100))
    everything = b"".join(contents(folder).values())
    for secret in (b"data.npz", str(tmp_path).encode(), bytes(32).hex().encode()):
        assert secret not in everything
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["files"]) == set(contents(folder)) - {"manifest.json"}


def test_two_deliveries_under_one_key_share_neither_ids_nor_order(source, tmp_path):
    """Otherwise somebody who has both could tell that two rows are the same sample."""
    ids, labels = {}, {}
    for name, dtype in (("one", "float32"), ("two", "float16")):
        options = {"dtype": dtype, "rows_per_shard": 16}
        deliver(source, make_layer(), make_key(), LocalStore(tmp_path / name), **options)
        table = pq.read_table(tmp_path / name / "data", partitioning=None)
        ids[name], labels[name] = table["row_id"].to_pylist(), table["label"].to_pylist()
    assert len(ids["one"]) == 130
    assert not set(ids["one"]) & set(ids["two"])
    assert labels["one"] != labels["two"]
    assert sorted(labels["one"]) == sorted(labels["two"])


def test_eight_bits_take_the_bytes_of_the_images(tmp_path):
    path = write_npz(tmp_path / "data.npz", train=4000, test=0)
    folder = tmp_path / "out"
    delivered = deliver(open_source(str(path)), make_layer(), make_key(), LocalStore(folder), dtype="int8")
    ids_and_labels = 4000 * (16 + 4 + 8)
    # Parquet marks where each row of a list begins, which weighs more the smaller an image is.
    assert delivered.delivery.manifest.data_bytes - ids_and_labels <= 1.05 * 4000 * 192


def test_another_key_recovers_nothing(source, tmp_path):
    store = LocalStore(tmp_path / "out")
    deliver(source, make_layer(), make_key(), store, **SMALL)
    with pytest.raises(DeliveryError, match="use that key"):
        recover(store, make_key(1))


def test_shards_are_counted_by_their_ends(source, tmp_path):
    """Not by reading them whole: on S3 that would be a download."""
    read = []

    class Watched(LocalStore):
        def read(self, name):
            read.append(name)
            return super().read(name)

    deliver(source, make_layer(), make_key(), Watched(tmp_path / "out"), **SMALL)
    assert not [name for name in read if name.startswith("data/")]


def test_a_combination_that_would_be_useless_is_refused(tmp_path, rng):
    """A badly conditioned core and 8 bits: the features would be noise."""
    path = write_npz(tmp_path / "data.npz")
    seed = next(
        seed
        for seed in range(256)
        if (core := make_key(seed, core="gaussian").morphing.core).condition > 32 * core.size / 3
    )
    with pytest.raises(
        DeliveryError, match=r'features would be off by .*dtype="float16" or dtype="float32"'
    ):
        deliver(
            open_source(str(path)), make_layer(), make_key(seed, core="gaussian"),
            LocalStore(tmp_path / "out"), dtype="int8",
        )  # fmt: skip


def test_a_key_for_another_shape_is_refused(source, tmp_path):
    key = mole.MorphKey.generate((3, 8, 9), insecure_seed=bytes(32), **cut())
    with pytest.raises(ParameterError, match="give the key for this layer, or make one"):
        deliver(source, make_layer(), key, LocalStore(tmp_path / "out"), **SMALL)
    assert SHAPE == (3, 8, 8)


def test_a_key_of_another_shape_is_not_taken_for_one_of_a_second_developer(tmp_path, rng):
    key = mole.MorphKey.generate((20,))
    layers = {}
    for size in (20, 21):
        np.save(tmp_path / f"{size}.npy", np.ones((4, size), np.float32))
        layers[size] = mole.FirstLayer.linear(rng.normal(size=(8, size)), None, input_shape=(size,))
    deliver(tmp_path / "20.npy", layers[20], key, tmp_path / "out")
    with pytest.raises(ParameterError, match=r"the key morphs samples of shape \(20,\)"):
        deliver(tmp_path / "21.npy", layers[21], key, tmp_path / "other")


def test_labels_stay_where_they_are_not_wanted(tmp_path):
    """With them stay the names of the classes, and a place with labels is not taken for one without."""
    data, layer, key = write_npz(tmp_path / "data.npz"), make_layer(), make_key()
    made = {
        name: deliver(data, layer, key, tmp_path / name, class_names=False, labels=name == "with", **SMALL)
        for name in ("with", "without")
    }
    assert (made["with"].has_labels, made["without"].has_labels) == (True, False)
    assert made["with"].delivery.labels("train") is not None
    assert made["without"].delivery.labels("train") is None
    assert all(check.holds for check in verify(made["without"].delivery))
    with pytest.raises(DeliveryError, match="another delivery already"):
        deliver(data, layer, key, tmp_path / "with", class_names=False, labels=False, **SMALL)


def test_every_file_is_written_beside_and_renamed_once(source, tmp_path, monkeypatch):
    renamed, replace = [], Path.replace

    def note(self, target):
        renamed.append(Path(target).relative_to(tmp_path / "out").as_posix())
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", note)
    deliver(source, make_layer(), make_key(), tmp_path / "out", dtype="int8", **SMALL)
    assert sorted(renamed) == sorted({*contents(tmp_path / "out"), "unfinished.json"})
