"""Deliveries of 8 bits: their scales, shards of earlier versions, and what their cards say."""

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mole
from deliveries import make_key, make_layer, unfinish, write_npz
from mole.errors import MoleError, ShapeError
from mole.exchange import shards
from mole.exchange.card import dataset_card
from mole.exchange.delivery import Delivery
from mole.torch import MorphedDataset
from small_models import by_torch

ROWS, SHARD = 40, 12
GOLDEN = Path(__file__).parents[1] / "golden" / "delivery-0.3" / "int8"


@pytest.fixture
def eight(tmp_path):
    mole.deliver(
        write_npz(tmp_path / "d.npz", train=ROWS), make_layer(), make_key(), tmp_path / "d",
        dtype="int8", rows_per_shard=SHARD,
    )  # fmt: skip
    return tmp_path / "d"


def as_before_0_6(path):
    """A shard of 8 bits as earlier versions wrote it."""
    table = pq.read_table(path)
    names = ["image" if name == "image_int8" else name for name in table.column_names]
    metadata = {name: text for name, text in table.schema.metadata.items() if name != b"scales"}
    pq.write_table(table.rename_columns(names).replace_schema_metadata(metadata), path)


def test_work_that_an_earlier_version_began_ends_with_shards_of_one_kind(eight):
    delivery = Delivery.open(eight)
    before = {name: (eight / name).read_bytes() for name in delivery.shard_names()}
    for name in delivery.shard_names("train")[1:]:
        as_before_0_6(eight / name)
    unfinish(delivery)
    again = mole.deliver(
        eight.with_suffix(".npz"), make_layer(), make_key(), eight, dtype="int8", rows_per_shard=SHARD
    )
    assert again.delivery.manifest == delivery.manifest
    assert {name: (eight / name).read_bytes() for name in delivery.shard_names()} == before


def test_a_shard_with_both_columns_is_refused(eight):
    path = eight / Delivery.open(eight).shard_names("train")[0]
    table = pq.read_table(path)
    pq.write_table(table.append_column("image", table["image_int8"]), path)
    with pytest.raises(MoleError, match="has two columns of images"):
        _ = MorphedDataset(eight)[0]


def test_scales_that_differ_do_not_verify(eight, monkeypatch):
    assert all(check.holds for check in mole.verify(eight))
    delivery = Delivery.open(eight)
    path = eight / delivery.shard_names("train")[0]
    table = pq.read_table(path)
    scales = base64.b64encode((2 * delivery.encoding.scales).tobytes())
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"scales": scales}), path)
    delivery.manifest.write(delivery.store, delivery.manifest.files)
    found = {check.what: check for check in mole.verify(eight)}
    assert found["rows"].holds is False
    assert "a shard with other scales than scales.safetensors" in found["rows"].detail


def test_a_manifest_that_contradicts_itself_is_refused(eight, tmp_path):
    delivery = Delivery.open(eight)
    for changed in ({"dtype": "float32"}, {"column": "pixels"}):
        replace(delivery.manifest, **changed).write(delivery.store)
        with pytest.raises(MoleError, match="'column' does not fit its version and number type"):
            Delivery.open(eight)


@pytest.mark.parametrize(
    ("labels", "classes", "kept", "expected"),
    [
        (range(3), ("a", "b", "c"), {}, "'2': \"c\""),
        (range(3), None, {}, "'2': \"2\""),
        (range(3), ("a", "a", "c"), {}, "dtype: int64"),
        (range(4), ("a", "b", "c"), {}, "dtype: int64"),
        (range(-1, 3), None, {}, "dtype: int64"),
        (range(20_000), None, {}, "dtype: int64"),
        (None, None, {"a: b": pa.list_(pa.float32())}, 'name: "a: b"\n    sequence: float32\n'),
        (range(3), None, {"when": pa.timestamp("s")}, None),
    ],
)
def test_the_head_says_what_it_can_say_for_certain(labels, classes, kept, expected):
    manifest = replace(Delivery.open(GOLDEN).manifest, classes=classes)
    head = dataset_card(manifest, labels, kept).split("---\n")[1]
    assert ("dataset_info" in head) == (expected is not None)
    assert expected is None or expected in head


def test_the_card_names_no_package_that_is_not_published(eight):
    card = (eight / "README.md").read_text()
    assert "pip install '.[torch]'" in card
    assert "morphed-learning" not in card


def test_8_bits_of_version_0_3_are_called_image_and_decoded_all_the_same():
    table = pq.read_table(sorted((GOLDEN / "data").glob("train-*.parquet")))
    assert "image" in table.column_names
    assert np.array_equal(mole.decode(table, GOLDEN), by_torch(GOLDEN))
    with pytest.raises(ShapeError, match="there is no column 'image' among"):
        mole.decode(table.rename_columns(["row_id", "image_int8", "label"]), GOLDEN)


def test_large_samples_leave_their_scales_beside(monkeypatch, tmp_path):
    monkeypatch.setattr(shards, "MOST_STORED_SCALES", 191)
    mole.deliver(
        write_npz(tmp_path / "d.npz", train=ROWS), make_layer(), make_key(), tmp_path / "d", dtype="int8"
    )
    assert all(check.holds for check in mole.verify(tmp_path / "d"))
    shard = Delivery.open(tmp_path / "d").shard_names("train")[0]
    assert b"scales" not in pq.read_schema(tmp_path / "d" / shard).metadata
    assert np.array_equal(
        mole.decode(pq.read_table(tmp_path / "d" / "data"), tmp_path / "d")[30:], by_torch(tmp_path / "d")
    )
