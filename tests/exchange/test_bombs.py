"""Small files that ask for gigabytes, or for hours: refused by what they say, before any of it is made."""

import base64
import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mole
from deliveries import SMALL, make_key, make_layer, write_npz
from mole.errors import DeliveryError, LayerFileError, UnsupportedLayerError
from mole.exchange.delivery import Delivery
from mole.exchange.shard_files import ShardFile
from mole.exchange.shards import Shard, write_shard
from mole.quantities import size_text
from mole.storage.arrow_reading import Parquet
from mole.storage.checked import load_checked, save_checked
from mole.storage.stores import LocalStore

SHAPE = (3, 8, 8)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    data = write_npz(folder / "data.npz", train=40, test=8)
    mole.deliver(data, make_layer(), make_key(), folder / "delivery", **SMALL)
    return folder / "delivery"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"input_shape": "[3, 16000, 16000]"}, "more than 16777216 elements"),
        ({"padding": "[[9000, 9000], [9000, 9000]]"}, "too large"),
        ({"dilation": f"[{10**30}, {10**30}]"}, "whole numbers"),
        ({"dilation": "[100000, 100000]", "padding": "[[0, 0], [0, 0]]"}, "too large"),
        ({"input_shape": "[3, 2000, 2000]"}, "features"),
        ({"input_shape": json.dumps([3] * 5000)}, "cannot be used"),
    ],
)
def test_a_layer_of_four_hundred_bytes(tmp_path, fields, reason):
    layer = mole.FirstLayer.conv(np.ones((32, 3, 1, 1), np.float32), None, input_shape=SHAPE)
    mole.save(layer, tmp_path / "good")
    tensors, metadata = load_checked(tmp_path / "good")
    save_checked(tmp_path / "layer", tensors, {**metadata, **fields})
    with pytest.raises(LayerFileError, match=reason) as caught:
        mole.load(tmp_path / "layer")
    assert len(str(caught.value)) < 400


def test_groups_and_kernels_that_grow_when_they_are_used():
    """A quarter of a megabyte of weights that is 17 GB with its groups written out, and a large kernel."""
    with pytest.raises(UnsupportedLayerError, match="products a channel"):
        mole.FirstLayer.conv(np.ones((1 << 16, 1, 1)), None, input_shape=(1 << 16, 1), groups=1 << 16)
    with pytest.raises(UnsupportedLayerError, match="products a channel"):
        mole.FirstLayer.conv(np.ones((1, 1, 9, 9)), None, input_shape=(1, 4000, 4000))


def test_the_largest_layers_of_the_paper_are_far_from_the_bounds():
    for weight, input_shape, stride in (
        ((64, 3, 3, 3), (3, 224, 224), 1),
        ((64, 3, 7, 7), (3, 1024, 1024), 2),
    ):
        layer = mole.FirstLayer.conv(
            np.ones(weight), None, input_shape=input_shape, stride=stride, padding=1
        )
        assert layer.output_shape[0] == 64


def rewritten(folder, change):
    """The delivery's manifest after a change, with its checksum right."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    blank = json.dumps({**manifest, "seal": "0" * 64}, indent=1).encode()
    path.write_bytes(blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1))


@pytest.fixture
def copy(delivered, tmp_path):
    (tmp_path / "manifest.json").write_bytes((delivered / "manifest.json").read_bytes())
    return tmp_path


def test_a_manifest_of_a_billion_shards(copy):
    rewritten(copy, lambda manifest: manifest["splits"]["train"].update(shards=10**9))
    with pytest.raises(
        DeliveryError, match=r"manifest.json .*'shards' is not a whole number from 0 to \d+\)"
    ):
        Delivery.open(copy)


def test_a_manifest_of_a_thousand_splits(copy):
    """Each with no more shards than there are files, and all together with many more."""

    def split(manifest):
        train = {**manifest["splits"]["train"], "shards": len(manifest["files"])}
        manifest["splits"] = {f"split{number}": train for number in range(1000)}

    rewritten(copy, split)
    with pytest.raises(DeliveryError, match=r"manifest\.json .*more shards than files"):
        Delivery.open(copy)


def test_a_manifest_of_more_samples_than_there_are(copy):
    rewritten(copy, lambda manifest: manifest["splits"]["train"].update(samples=1 << 40, rows=1 << 40))
    with pytest.raises(DeliveryError, match="'samples' is not a whole number from 0"):
        Delivery.open(copy)


def test_a_manifest_longer_than_any(copy):
    with (copy / "manifest.json").open("ab") as file:
        file.truncate(1 << 40)  # a terabyte that takes no room on the disk
    with pytest.raises(DeliveryError, match="longer than 32 MiB"):
        Delivery.open(copy)


@pytest.mark.parametrize(
    "value", [None, -1, 1.5, "x", "\x1b[2J", [], {}, [[1]], {"a": {}}, [None], 1 << 70]
)
def test_fields_of_another_type(copy, value):
    """Each field in turn: it is read as what it is, or refused by name, and nothing else is ever raised."""
    whole = json.loads((copy / "manifest.json").read_bytes())
    for name in whole.keys() - {"seal", "format", "version"}:
        (copy / "manifest.json").write_text(json.dumps(whole))
        rewritten(copy, lambda manifest, name=name: manifest.update({name: value}))
        found = read_or_refused(copy)
        if isinstance(found, str):
            assert "manifest.json does not follow the format" in found
            assert "\x1b" not in found
        else:
            assert vars(found)[name] == (tuple(value) if isinstance(value, list) else value)


def read_or_refused(folder):
    try:
        return Delivery.open(folder).manifest
    except DeliveryError as error:
        return str(error)


def shard_file(folder, name="shard.parquet"):
    return ShardFile(LocalStore(folder), name)


def rows_of(count, shape=SHAPE, dtype="int8"):
    return np.zeros((count, *shape), dtype).reshape(count, -1)


def test_equal_rows_that_take_no_room(tmp_path):
    count = 20_000
    flat = pa.array(rows_of(count).reshape(-1))
    image = pa.FixedSizeListArray.from_arrays(flat, 192)
    table = pa.table({"row_id": pa.array(["0" * 16] * count), "image_int8": image})
    field = table.schema.field("image_int8").with_metadata({"shape": json.dumps(SHAPE)})
    table = pa.Table.from_arrays(table.columns, schema=table.schema.set(1, field))
    pq.write_table(table, tmp_path / "shard.parquet", compression="none")
    size = (tmp_path / "shard.parquet").stat().st_size
    assert size < 8 * count
    for ask in (lambda file: file.read(SHAPE, "int8"), ShardFile.row_ids, ShardFile.row_count):
        with pytest.raises(DeliveryError, match=f"20000 rows, in {size_text(size)}"):
            ask(shard_file(tmp_path))


@pytest.mark.parametrize("packing", ["zstd", "gzip", "brotli"])
def test_packings_without_a_bound(tmp_path, packing):
    shard = Shard(rows_of(2), None, ["0" * 16, "1" * 16], {})
    write_shard(shard, SHAPE, tmp_path / "shard.parquet")
    assert len(shard_file(tmp_path).read(SHAPE, "int8").values) == 2
    pq.write_table(
        pq.read_table(tmp_path / "shard.parquet"), tmp_path / "shard.parquet", compression=packing
    )
    with pytest.raises(DeliveryError, match="unpack to anything"):
        shard_file(tmp_path).read(SHAPE, "int8")


def changed_footer(path, old, new):
    """Change the last of some equal bytes of a footer to others of the same length."""
    content = path.read_bytes()
    at = content.rindex(old)
    assert len(old) == len(new)
    path.write_bytes(content[:at] + new + content[at + len(new) :])


def test_a_packing_under_another_name(tmp_path):
    """Arrow knows columns by their order, and reads this one all the same."""
    path = tmp_path / "shard.parquet"
    table = pa.table({"row_id": [f"{index:016x}" + "a" * (1 << 16) for index in range(20)]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    where = pq.ParquetFile(path).metadata.row_group(0).column(0).path_in_schema.encode()
    content = path.read_bytes()
    second = content.index(where, content.index(where, -int.from_bytes(content[-8:-4], "little") - 8) + 1)
    path.write_bytes(content[:second] + b"row_iX" + content[second + 6 :])
    assert pq.ParquetFile(path).read(["row_id"]).num_rows == 20
    with pytest.raises(DeliveryError, match="unpack to anything"):
        shard_file(tmp_path).row_ids()


def listed(count, *, name):
    """One row with a list of so many equal values, which take no room."""
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.array(np.zeros(count, np.int8)))
    return pa.table({"row_id": ["0" * 16], name: lists})


def test_a_label_that_is_a_list(tmp_path):
    pq.write_table(listed(1 << 20, name="label"), tmp_path / "shard.parquet", data_page_size=1 << 30)
    assert (tmp_path / "shard.parquet").stat().st_size < 2_000
    with pytest.raises(DeliveryError, match="labels are not whole numbers"):
        shard_file(tmp_path).labels()


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.int64(), pa.struct([("a", pa.string())])])
def test_row_ids_that_are_no_text(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(Parquet, "read", None)  # so that it is refused unread
    pq.write_table(pa.table({"row_id": pa.array([None], kind), "n": [1]}), tmp_path / "shard.parquet")
    with pytest.raises(DeliveryError, match=r"is not a readable shard: (its row ids|b'row_id')"):
        shard_file(tmp_path).row_ids()


def image_bomb(path, count):
    """A row of so many values that says in Arrow's words that it has 192."""
    fields = [
        pa.field("row_id", pa.string()),
        pa.field("image_int8", pa.list_(pa.int8(), 192), metadata={b"shape": json.dumps(SHAPE)}),
    ]
    said, table = pa.schema(fields).serialize().to_pybytes(), listed(count, name="image_int8")
    with pq.ParquetWriter(path, table.schema, store_schema=False, data_page_size=1 << 30) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(said).decode()})


def test_an_image_of_more_values_than_it_says(tmp_path):
    path, count = tmp_path / "shard.parquet", 1 << 20
    image_bomb(path, 192)
    assert shard_file(tmp_path).read(SHAPE, "int8").values.shape == (1, 192)
    image_bomb(path, count)
    assert path.stat().st_size < 2_000
    with pytest.raises(DeliveryError, match=f"has {count} values, and 192 at most"):
        shard_file(tmp_path).read(SHAPE, "int8")
    said = zigzag(count)
    assert path.read_bytes().count(b"\x16" + said) == 1  # a 64-bit number: that of the footer
    changed_footer(path, b"\x16" + said, b"\x16" + bytes([0x80 | said[0], 0x83, 0x80, 0x00][: len(said)]))
    assert pq.ParquetFile(path).metadata.row_group(0).column(1).num_values == 192
    with pytest.raises(DeliveryError, match="a page that can unpack to anything"):
        shard_file(tmp_path).read(SHAPE, "int8")


def zigzag(number):
    """A number as a footer has it."""
    number, found = number << 1, []
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def test_values_of_a_type_that_arrays_do_not_have(tmp_path):
    image = pa.FixedSizeListArray.from_arrays(pa.array([0] * 192, pa.time32("s")), 192)
    field = pa.field("image_int8", image.type, metadata={"shape": json.dumps(SHAPE)})
    table = pa.table([["0" * 16], image], pa.schema([pa.field("row_id", pa.string()), field]))
    pq.write_table(table, tmp_path / "shard.parquet")
    with pytest.raises(DeliveryError, match="is not a readable shard"):
        shard_file(tmp_path).read(SHAPE, "int8")


def test_a_further_column_is_not_even_looked_at(tmp_path):
    """One text of a megabyte, for every row: stored once, and 200 MB when it is read."""
    ids = [f"{index:016x}" for index in range(200)]
    write_shard(Shard(rows_of(200), None, ids, {}), SHAPE, tmp_path / "shard.parquet")
    table = pq.read_table(tmp_path / "shard.parquet").append_column("note", [["x" * (1 << 20)] * 200])
    pq.write_table(table, tmp_path / "shard.parquet", compression="none")
    shard = shard_file(tmp_path).read(SHAPE, "int8")
    assert (shard.extra, list(shard.row_ids)) == ({}, ids)


@pytest.mark.parametrize("label", [10**9, -(10**9)])
def test_labels_that_would_make_a_network_of_a_billion_classes(tmp_path, label):
    shard = Shard(rows_of(2), np.array([0, label]), ["0" * 16, "1" * 16], {})
    write_shard(shard, SHAPE, tmp_path / "shard.parquet")
    for ask in (ShardFile.labels, lambda file: file.read(SHAPE, "int8")):
        with pytest.raises(DeliveryError, match="labels go beyond"):
            ask(shard_file(tmp_path))


@pytest.mark.parametrize("ids", [["0" * 16, "x" * 16], ["0" * 16, "0" * 15], ["0" * 16, None]])
def test_row_ids_that_are_none(tmp_path, ids):
    path = tmp_path / "shard.parquet"
    write_shard(Shard(rows_of(2), None, ["0" * 16, "1" * 16], {}), SHAPE, path)
    table = pq.read_table(path)
    at = table.schema.get_field_index("row_id")
    pq.write_table(table.set_column(at, "row_id", pa.array(ids, pa.string())), path, compression="none")
    with pytest.raises(DeliveryError, match="16 hexadecimal digits"):
        shard_file(tmp_path).row_ids()
