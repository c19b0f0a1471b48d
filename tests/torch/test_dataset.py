"""The developer reads a delivery: every row once, with its label, in PyTorch and elsewhere."""

import json
import os
import pickle
import shutil
import weakref

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.data import DataLoader

from deliveries import make_key, make_layer, tensors, write_npz
from mole.errors import DeliveryError, MoleError
from mole.exchange import delivery as delivery_module
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import Manifest
from mole.exchange.shard_files import ShardFile
from mole.exchange.shards import DTYPES, shard_name
from mole.provider.deliver import deliver
from mole.provider.recover import recover
from mole.provider.row_numbers import RowNumbers
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.storage.stores import open_store
from mole.torch import MorphedDataset, shard_cache
from mole.torch.dataset import ShardSampler

ROWS, SHARD = 100, 16
OFF_BY = {"float32": 0, "float16": 1, "int8": 8}  # of 255, after recovering


def make_delivery(folder, *, data=None, dtype="float32", **options):
    """A delivery of 100 and 30 images of 3x8x8, and the arrays it was made from."""
    path = data or write_npz(folder.with_suffix(".npz"), train=ROWS)
    choices = dict(dtype=dtype, rows_per_shard=SHARD, **options)
    deliver(open_source(str(path)), make_layer(), make_key(), open_store(str(folder)), **choices)
    return folder, dict(np.load(path))


@pytest.fixture(scope="module", params=DTYPES)
def delivery(request, tmp_path_factory):
    return make_delivery(tmp_path_factory.mktemp(request.param) / "delivery", dtype=request.param)


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    return make_delivery(tmp_path_factory.mktemp("floats") / "delivery")[0]


def source_rows(folder, split, arrays):
    """What each delivered row should be: pixels with channels first, labels, row ids."""
    which = (Manifest.read(open_store(str(folder))).delivery_id, split, len(arrays[f"y_{split}"]))
    rows = RowNumbers(make_key(), *which)
    pixels = arrays[f"x_{split}"].transpose(0, 3, 1, 2)
    return pixels[rows.order], arrays[f"y_{split}"][rows.order], rows.ids


def pixels_of(samples, key=None):
    plain = (key or make_key()).morphing.unmorph(np.asarray(samples).reshape(-1, 3, 8, 8))
    return Preparation.for_layer(make_layer()).pixels(plain.reshape(-1, 3, 8, 8))


@pytest.mark.parametrize("split", ["train", "test"])
def test_labels_stay_with_their_images(delivery, split):
    folder, arrays = delivery
    dataset = MorphedDataset(folder, split)
    images, labels, ids = source_rows(folder, split, arrays)
    samples, found = zip(*(dataset[index] for index in range(len(dataset))), strict=True)
    assert all(sample.dtype == torch.float32 and sample.shape == (3, 8, 8) for sample in samples)
    assert all(isinstance(label, int) for label in found)
    assert list(found) == labels.tolist() == dataset.labels.tolist()
    assert dataset.row_ids == list(ids)
    off = np.abs(pixels_of(torch.stack(samples)).astype(int) - images).max()
    assert off <= OFF_BY[dataset.delivery.manifest.dtype]
    wrong = pixels_of(torch.stack(samples), make_key(seed=1)).astype(int)
    assert np.abs(wrong - images).mean() > 30  # the negative twin: a wrong key shows nothing


def test_it_says_what_recover_says(delivery):
    folder, arrays = delivery
    recovered = recover(open_store(str(folder)), make_key())
    dataset = MorphedDataset(folder, "train")
    order = RowNumbers(make_key(), dataset.delivery.manifest.delivery_id, "train", ROWS).order
    samples = torch.stack([sample for sample, _ in dataset])
    assert np.array_equal(pixels_of(samples), recovered["x_train"][order])
    assert np.array_equal(recovered["y_train"], arrays["y_train"])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_gives_every_row_once(delivery, workers):
    folder, _ = delivery
    dataset = MorphedDataset(folder, "train", cache_bytes=2 * SHARD * 192 * 4)
    in_order = torch.stack([sample for sample, _ in dataset])
    loader = DataLoader(dataset, batch_size=7, sampler=dataset.sampler(seed=3), num_workers=workers)
    batches = list(loader)
    samples, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
    assert len(batches) == 15
    assert samples.shape == (ROWS, 3, 8, 8)
    _, places = (samples.flatten(1) @ in_order.flatten(1).T / in_order.flatten(1).norm(dim=1)).max(dim=1)
    assert sorted(places.tolist()) == list(range(ROWS))
    assert places.tolist() != list(range(ROWS))
    assert torch.equal(samples, in_order[places])
    assert labels.tolist() == dataset.labels[places.numpy()].tolist()


def test_rows_across_shards_in_any_order(floats):
    dataset = MorphedDataset(floats, "train", cache_bytes=1)
    wanted = [99, 0, 16, 15, 0, -1]
    for (sample, label), index in zip(dataset.__getitems__(wanted), wanted, strict=True):
        assert torch.equal(sample, dataset[index][0])
        assert label == dataset.labels[index]
    assert len(list(dataset)) == len(dataset) == ROWS
    for outside in (ROWS, -ROWS - 1):
        with pytest.raises(IndexError, match="is not one of the 100"):
            _ = dataset[outside]


def test_memory_is_bounded_and_shards_are_read_once_a_pass(floats, monkeypatch):
    shard_bytes = SHARD * 192 * 4
    dataset = MorphedDataset(floats, "train", cache_bytes=3 * shard_bytes)
    read, values, original = [], [], ShardFile.read

    def noted(file, *given):
        shard = original(file, *given)
        read.append(file.name)
        values.append(weakref.ref(shard.values))
        return shard

    monkeypatch.setattr(ShardFile, "read", noted)
    for index in dataset.sampler(seed=0):
        _ = dataset[index]
        assert sum(kept.nbytes for ref in values if (kept := ref()) is not None) <= 3 * shard_bytes
    assert sorted(read) == [shard_name("train", index, 7) for index in range(7)]


def test_an_opened_delivery_is_not_opened_again(floats, monkeypatch):
    delivery = Delivery.open(floats)
    monkeypatch.setattr(Manifest, "read", None)
    monkeypatch.setattr(delivery_module, "open_store", None)
    monkeypatch.setattr(shard_cache, "open_store", None)
    datasets = [MorphedDataset(delivery, split) for split in ("train", "test")]
    assert [len(dataset) for dataset in datasets] == [ROWS, 30]
    assert all(
        dataset.delivery is delivery and len(dataset.row_ids) == len(dataset) for dataset in datasets
    )
    assert datasets[0][5][1] == datasets[0].labels[5]
    with pytest.raises(TypeError, match="not callable"):  # the negative twin: an address would be opened
        MorphedDataset(floats)


def test_a_forked_process_opens_the_store_itself(floats, monkeypatch):
    dataset = MorphedDataset(floats, "train", cache_bytes=1)
    expected, before = dataset[20][0], dataset.delivery
    opened, process = [], os.getpid()
    monkeypatch.setattr(shard_cache, "open_store", lambda label: opened.append(label) or open_store(label))
    assert torch.equal(dataset[99][0], dataset[99][0])
    assert opened == []
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    assert torch.equal(dataset[20][0], expected)
    assert torch.equal(dataset[40][0], MorphedDataset(before, "train")[40][0])
    assert opened == [str(floats)]
    assert dataset.delivery is not before


def test_the_sampler_repeats_itself_only_when_asked():
    rows = [5, 0, 7, 4]
    first, same, other = (ShardSampler(rows, seed=seed, shards_at_once=2) for seed in (1, 1, 2))
    one = list(first)
    assert len(first) == 16
    assert sorted(one) == list(range(16))
    assert one == list(same)
    assert list(first) == list(same) != one
    assert list(other) != one


def test_it_travels_to_other_processes_without_its_data(floats):
    dataset = MorphedDataset(floats, "train")
    expected, label = dataset[42]
    packed = pickle.dumps(dataset)
    assert len(packed) < 5000
    assert torch.equal(pickle.loads(packed)[42][0], expected)
    assert pickle.loads(packed)[42][1] == label


def test_a_delivery_behind_a_url(floats):
    dataset = MorphedDataset(f"file://{floats}", "test")
    assert torch.equal(dataset[3][0], MorphedDataset(floats, "test")[3][0])


def test_classes_and_data_without_labels(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "named.npz", images=images, labels=np.arange(20) % 3, classes=["a", "b", "c"])
    np.savez(tmp_path / "bare.npz", images=images)
    named = MorphedDataset(make_delivery(tmp_path / "one", data=tmp_path / "named.npz")[0])
    bare = MorphedDataset(make_delivery(tmp_path / "two", data=tmp_path / "bare.npz", layer_dtype=None)[0])
    assert (named.classes, named.class_count) == (("a", "b", "c"), 3)
    assert (bare.classes, bare.class_count, bare.labels) == (None, 0, None)
    assert isinstance(bare[0], torch.Tensor)
    assert next(iter(DataLoader(bare, batch_size=4))).shape == (4, 3, 8, 8)
    both = [{pixels_of(row).tobytes() for row in rows} for rows in ([row for row, _ in named], bare)]
    assert both[0] == both[1] == {image.transpose(2, 0, 1).tobytes() for image in images}


def test_other_readers(delivery):
    folder, arrays = delivery
    dtype = MorphedDataset(folder).delivery.manifest.dtype
    _, labels, ids = source_rows(folder, "train", arrays)
    files = sorted((folder / "data").glob("train-*.parquet"))
    table = pa.concat_tables(pq.read_table(file) for file in files)
    stored = tensors(table)
    assert stored.shape == (ROWS, 3, 8, 8)
    assert stored.dtype == dtype
    frame = polars.concat([polars.read_parquet(file) for file in files])
    assert frame["label"].to_list() == table["label"].to_pylist() == labels.tolist()
    assert frame["row_id"].to_list() == table["row_id"].to_pylist() == list(ids)
    column = "image_int8" if dtype == "int8" else "image"
    assert np.array_equal(np.stack(frame[column].to_list()).reshape(stored.shape), stored)


def test_hugging_face_datasets(delivery, tmp_path):
    import datasets

    folder, arrays = delivery
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path))
    assert {name: len(split) for name, split in loaded.items()} == {"train": ROWS, "test": 30}
    assert loaded["train"]["label"][:] == source_rows(folder, "train", arrays)[1].tolist()
    first = np.asarray(loaded["train"][0][MorphedDataset(folder).delivery.manifest.column])
    stored = tensors(pq.read_table(folder / shard_name("train", 0, 7)))
    assert np.array_equal(first.reshape(3, 8, 8), stored[0])


def remove_manifest(folder):
    (folder / "manifest.json").unlink()


def change_manifest(folder):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "dtype": "int8"}))


def remove_shard(folder):
    (folder / shard_name("train", 3, 7)).unlink()


def cut_shard(folder):
    path = folder / shard_name("train", 3, 7)
    path.write_bytes(path.read_bytes()[:-100])


def exchange_shard(folder):
    shutil.copy(folder / shard_name("train", 0, 7), folder / shard_name("train", 6, 7))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_manifest, "has no manifest.json, so it is not a delivery"),
        (change_manifest, "manifest.json is damaged"),
        (remove_shard, "train-00003-of-00007.parquet cannot be read: it does not exist"),
        (cut_shard, "train-00003-of-00007.parquet is not a readable shard"),
        (exchange_shard, "has 99 rows in split 'train' and its manifest says 100"),
        (shutil.rmtree, "does not exist: give the folder of a delivery"),
    ],
)
def test_a_damaged_delivery_is_named(floats, tmp_path, damage, message):
    folder = tmp_path / "delivery"
    shutil.copytree(floats, folder)
    damage(folder)
    with pytest.raises(DeliveryError, match=message):
        MorphedDataset(folder, "train")


def test_a_wrong_split_and_a_wrong_place_are_named(floats, tmp_path):
    with pytest.raises(DeliveryError, match=r"has no split 'valid': it has (train, test|test, train)"):
        MorphedDataset(floats, "valid")
    with pytest.raises(DeliveryError, match="is a file, and a folder is needed here"):
        MorphedDataset(floats / "manifest.json")
    with pytest.raises(MoleError, match="nonsense://somewhere"):
        MorphedDataset("nonsense://somewhere")
