"""A delivery in Hugging Face's `datasets`, as their users would load it: without saying what is in it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deliveries import make_key, make_layer, tensors
from mole.errors import ParameterError
from mole.exchange.shards import DTYPES
from mole.provider.deliver import deliver
from mole.provider.recover import recover
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore

TRAIN, TEST = 20, 5


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    found.disable_progress_bars()
    return found


def write_tables(folder, rng, *, labelled=True, site_of_test=None):
    """A source with further columns: one of them is empty in whole shards, one holds lists."""
    folder.mkdir()
    for split, count in (("train", TRAIN), ("test", TEST)):
        images = rng.integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
        columns = {
            "image": pa.FixedShapeTensorArray.from_numpy_ndarray(images),
            "note": pa.array([None] * (count - 1) + ["seen twice"], pa.string()),
            "site": pa.array(site_of_test if split == "test" and site_of_test else list(range(count))),
            "box": pa.array([[1.0, 2.0]] * count),
            "scan": pa.FixedShapeTensorArray.from_numpy_ndarray(images[:, :2, :2, 0].copy()),
        }
        if labelled:
            columns["label"] = pa.array(rng.integers(0, 3, count))
        pq.write_table(pa.table(columns), folder / f"{split}.parquet")
    return open_source(str(folder))


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("keep", [(), ("note", "site", "box", "scan")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_loads_without_being_told_its_features(datasets, tmp_path, dtype, keep, labelled):
    source = write_tables(tmp_path / "source", np.random.default_rng(0), labelled=labelled)
    folder = tmp_path / "d"
    deliver(
        source, make_layer(), make_key(), LocalStore(folder),
        dtype=dtype, keep=keep, rows_per_shard=6,
    )  # fmt: skip
    files = {split: str(folder / "data" / f"{split}-*.parquet") for split in ("train", "test")}
    cache = str(tmp_path / "cache")
    by_files = datasets.load_dataset("parquet", data_files=files, cache_dir=cache)
    by_card = datasets.load_dataset(str(folder), cache_dir=cache)
    column = "image_int8" if dtype == "int8" else "image"
    for loaded in (by_files, by_card):
        assert {split: len(rows) for split, rows in loaded.items()} == {"train": TRAIN, "test": TEST}
        expected = ["row_id", column, *(["label"] if labelled else []), *keep]
        assert loaded["train"].column_names == expected
        assert loaded["train"].features[column].feature == datasets.Value(dtype)
        assert loaded["test"].features == loaded["train"].features
    by_number = by_card["train"].features.copy()
    if labelled:
        assert by_number.pop("label") == datasets.ClassLabel(names=["0", "1", "2"])
        assert by_files["train"]["label"][:] == by_card["train"]["label"][:]
    assert by_number == {
        name: kind for name, kind in by_files["train"].features.items() if name in by_number
    }
    table = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("data/train-*.parquet")))
    rows = by_files["train"][:]
    assert np.array_equal(np.array(rows[column], dtype).reshape(-1, 3, 8, 8), tensors(table))
    assert rows["row_id"] == table["row_id"].to_pylist()
    if keep:
        ids = recover(LocalStore(folder), make_key())["row_id_train"].tolist()
        place = {row_id: index for index, row_id in enumerate(ids)}
        assert rows["site"] == [place[row_id] for row_id in rows["row_id"]]
        assert sorted(map(str, rows["note"])) == ["None"] * (TRAIN - 1) + ["seen twice"]


def test_all_files_at_once(datasets, tmp_path, rng):
    folder = tmp_path / "d"
    deliver(write_tables(tmp_path / "s", rng), make_layer(), make_key(), LocalStore(folder))
    loaded = datasets.load_dataset(
        "parquet", data_files=str(folder / "data" / "*.parquet"), cache_dir=str(tmp_path / "cache")
    )
    assert len(loaded["train"]) == TRAIN + TEST


def test_the_shape_travels_along(tmp_path, rng):
    deliver(write_tables(tmp_path / "s", rng), make_layer(), make_key(), LocalStore(tmp_path / "d"))
    field = pq.read_schema(tmp_path / "d" / "data" / "test-00000-of-00001.parquet").field("image")
    assert field.type.list_size == 192
    assert field.metadata[b"shape"] == b"[3, 8, 8]"


@pytest.mark.parametrize("name", ["row_id", "image", "image_int8", "label"])
def test_a_kept_column_never_takes_the_place_of_the_deliverys_own(tmp_path, rng, name):
    images = pa.FixedShapeTensorArray.from_numpy_ndarray(rng.integers(0, 256, (4, 8, 8, 3), dtype=np.uint8))
    columns = {
        "pixels": images,
        "row_id": ["a"] * 4,
        "image": ["1.png"] * 4,
        "label": range(4),
        "image_int8": [0] * 4,
    }
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    source = open_source(str(tmp_path / "d.parquet"))
    assert set(source.splits["train"].extra) == {"row_id", "image", "image_int8"}
    with pytest.raises(ParameterError, match=f"column '{name}' cannot be kept"):
        deliver(source, make_layer(), make_key(), LocalStore(tmp_path / "out"), keep=(name,))
    assert not (tmp_path / "out").exists()


def test_a_column_of_two_types_is_refused(tmp_path, rng):
    source = write_tables(tmp_path / "s", rng, site_of_test=list("abcde"))
    with pytest.raises(ParameterError, match="column 'site' holds string and int64 in different splits"):
        deliver(source, make_layer(), make_key(), LocalStore(tmp_path / "d"), keep=("site",))
