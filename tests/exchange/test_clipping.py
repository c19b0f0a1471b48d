"""What 8 bits cut off is counted, and said."""

import hashlib
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import mole
from deliveries import make_key, make_layer, unfinish
from mole.errors import DeliveryError, MoleWarning
from mole.exchange.clipping import CLIPPED, Clipping
from mole.exchange.manifest import BLANK, Manifest
from mole.exchange.shards import Encoding
from mole.exchange.verify import verify
from mole.provider import delivery_maker
from mole.provider.deliver import deliver
from mole.storage.stores import LocalStore

WHITE = 41  # not among the first rows in either layout


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Dark images, and a white one that is not in the sample to which the scales are fitted."""
    monkeypatch.setattr(delivery_maker, "SCALE_SAMPLE", 16)
    images = np.random.default_rng(0).integers(0, 40, (96, 8, 8, 3), dtype=np.uint8)
    images[WHITE] = 255
    np.savez(tmp_path / "data.npz", x_train=images)
    return tmp_path / "data.npz"


def delivered(data, out, dtype="int8"):
    return deliver(data, make_layer(), make_key(), out, dtype=dtype, rows_per_shard=16).delivery


def oracle(rows, encoding):
    """The same, value by value."""
    off = np.abs(encoding.decode(encoding.encode(rows)).astype(np.float64) - rows)
    beyond = off > 0.5001 * encoding.scales
    lost = np.sqrt((np.where(beyond, off, 0) ** 2).sum(axis=1))
    noteworthy = lost > 0.1 * np.linalg.norm(rows, axis=1)
    return int(beyond.sum()), int(noteworthy.sum()), float(off[beyond].max(initial=0))


@pytest.mark.parametrize("outliers", [0, 1, 40])
def test_they_are_counted_as_they_would_be_one_by_one(rng, outliers):
    rows = rng.normal(size=(200, 12)).astype(np.float32)
    encoding = Encoding.fit("int8", rows)
    rows[rng.choice(200, outliers, replace=False), 3] *= 30
    rows[7, 5] = 1.01 * 127 * encoding.scales[5]  # beyond, and hardly worth a word
    values, in_rows, largest = oracle(rows, encoding)
    found = Clipping.of(rows, encoding)
    assert (found.values, found.rows) == (values, in_rows)
    assert found.largest_error == pytest.approx(largest, rel=0.01)
    assert found.values >= found.rows
    assert (found.rows > 0) == (outliers > 0)
    assert Clipping.of(rows, Encoding("float16")) == Clipping()


def test_a_white_image_among_dark_ones_is_said_to_be_cut_off(data, tmp_path):
    with pytest.warns(MoleWarning, match="1 of 96 rows .* 8 bits cut them off.*; float16 would keep them"):
        made = delivered(data, tmp_path / "eight")
    clipped = made.manifest.clipped
    assert clipped.rows == 1
    assert clipped.values > 20
    assert clipped.largest_error > 1
    recovered = mole.recover(made, make_key())["x_train"]
    assert recovered[WHITE].min() < 200  # which is why somebody has to be told
    content = json.loads((tmp_path / "eight" / "manifest.json").read_text())
    assert (content["version"], content["clipped"]) == (4, clipped.fields())
    assert mole.Delivery.open(tmp_path / "eight").manifest == made.manifest
    assert all(check.holds for check in verify(made))


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_where_nothing_is_cut_off_nothing_is_said_and_the_version_stays(data, tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(delivery_maker, "SCALE_SAMPLE", 4096)
    made = delivered(data, tmp_path / "d", dtype)
    assert made.manifest.clipped is None
    content = json.loads((tmp_path / "d" / "manifest.json").read_text())
    assert content["version"] == (4 if dtype == "int8" else 2)
    assert "clipped" not in content
    assert mole.recover(made, make_key())["x_train"][WHITE].min() > 250


def test_interrupted_work_counts_too(data, tmp_path):
    with pytest.warns(MoleWarning):
        made = delivered(data, tmp_path / "d")
    unfinish(made)
    with pytest.warns(MoleWarning, match="1 of 96 rows"):
        again = delivered(data, tmp_path / "d")
    assert again.manifest == made.manifest


@pytest.mark.parametrize(
    "clipped",
    [
        [],
        {"values": 2, "rows": 1},
        {"values": 2, "rows": 1, "largest_error": float("nan")},
        {"values": 2, "rows": 1, "largest_error": float("inf")},
        {"values": 2, "rows": 1, "largest_error": "0.5"},
        {"values": True, "rows": 1, "largest_error": 0.5},
        {"values": 1, "rows": 2, "largest_error": 0.5},
        {"values": 0, "rows": 0, "largest_error": 0},
        {"values": 2, "rows": -1, "largest_error": 0.5},
    ],
)
def test_a_manifest_that_says_nonsense_of_it_is_refused(data, tmp_path, clipped):
    made = delivered(data, tmp_path / "d", "float16")
    content = {**json.loads((tmp_path / "d" / "manifest.json").read_text()), "version": 3}
    for said, is_good in ((clipped, False), ({"values": 2, "rows": 1, "largest_error": 0.5}, True)):
        text = json.dumps({**content, "seal": BLANK, "clipped": said}).encode()
        seal = hashlib.sha256(text).hexdigest()
        made.store.write("manifest.json", text.replace(BLANK.encode(), seal.encode(), 1))
        if is_good:
            assert Manifest.read(LocalStore(tmp_path / "d")).clipped == Clipping(2, 1, 0.5)
        else:
            with pytest.raises(DeliveryError, match="does not follow the format"):
                Manifest.read(LocalStore(tmp_path / "d"))


def test_a_damaged_count_in_a_shard_of_an_earlier_run_is_a_sentence(tmp_path, data):
    with pytest.warns(MoleWarning):
        delivery = delivered(data, tmp_path / "out")
    unfinish(delivery)
    path = next(
        path for path in (tmp_path / "out" / "data").iterdir() if CLIPPED in pq.read_schema(path).metadata
    )
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, CLIPPED: b'{"values": "many"}'}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(DeliveryError, match=rf"{path.name} is damaged .*: remove it, and call again$"):
        delivered(data, tmp_path / "out")
    path.unlink()
    with pytest.warns(MoleWarning):
        assert delivered(data, tmp_path / "out").manifest == delivery.manifest
