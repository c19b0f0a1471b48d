"""Every reader that the documents name gets the same right numbers from a delivery."""

import base64
import re
import shutil

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mole
from deliveries import make_key, make_layer, write_npz
from mole.errors import ShapeError
from mole.exchange.delivery import Delivery
from mole.exchange.shards import DTYPES
from mole.provider.row_numbers import RowNumbers
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.torch import MorphedDataset
from small_models import by_torch

ROWS, SHARD = 40, 12

CLASSES = ("cat", 'the "dog": #1', "a", "b", "c", "d", "e", "f", "g", "Zoë")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module", params=DTYPES)
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    arrays = dict(np.load(write_npz(place / "plain.npz", train=ROWS, test=10)))
    np.savez(place / "data.npz", **arrays, classes=CLASSES)
    options = {"dtype": request.param, "rows_per_shard": SHARD, "class_names": True}
    mole.deliver(place / "data.npz", make_layer(), make_key(), place / "delivery", **options)
    return place / "delivery"


def loaded(folder):
    import datasets

    datasets.disable_progress_bars()
    return datasets.load_dataset(str(folder), cache_dir=str(folder.parent / "cache"))["train"]


def read(how, folder):
    """The rows of split 'train' as a reader gives them."""
    files = sorted((folder / "data").glob("train-*.parquet"))
    column = Delivery.open(folder).manifest.column
    if how.startswith("datasets"):
        rows = loaded(folder)
        return {
            "datasets": lambda: rows,
            "datasets batch": lambda: rows[:],
            "datasets numpy": lambda: rows.with_format("numpy")[:],
            "datasets torch": lambda: rows.with_format("torch")[:],
            "datasets column": lambda: rows[column][:],
        }[how]()
    return {
        "pyarrow": lambda: (
            pq.read_table(folder / "data", filters=None).slice(0, 0)
            if not files
            else pa.concat_tables(map(pq.read_table, files))
        ),
        "pyarrow files": lambda: pq.read_table(files),
        "pyarrow column": lambda: pq.read_table(files)[column],
        "polars": lambda: polars.read_parquet(folder / "data" / "train-*.parquet"),
        "polars scan": lambda: polars.scan_parquet(folder / "data" / "train-*.parquet").collect(),
        "polars series": lambda: polars.read_parquet(files)[column],
        "pandas": lambda: pandas.concat([pandas.read_parquet(file) for file in files]),
        "numpy": lambda: np.stack(pq.read_table(files)[column].to_pylist()).reshape(-1, 3, 8, 8),
    }[how]()


@pytest.mark.parametrize(
    "how",
    [
        "pyarrow", "pyarrow files", "pyarrow column", "polars", "polars scan", "polars series", "pandas",
        "datasets", "datasets batch", "datasets numpy", "datasets torch", "datasets column", "numpy",
    ],
)  # fmt: skip
def test_it_gives_what_the_data_set_gives(folder, how):
    found = mole.decode(read(how, folder), folder)
    assert found.dtype == np.float32
    assert np.array_equal(found, by_torch(folder))


def test_the_values_are_the_morphed_ones_within_what_the_number_type_loses(folder):
    delivery, key, layer = Delivery.open(folder), make_key(), make_layer()
    source = open_source(str(folder.parent / "data.npz"))
    order = RowNumbers.of(delivery, key, "train").order
    plain = Preparation.for_layer(layer).plain_samples(source.splits["train"], order.tolist())
    off = np.abs(by_torch(folder) - key.morphing.morph(plain)).reshape(ROWS, -1)
    reach = {"float32": 1e-5, "float16": 4e-3}.get(delivery.manifest.dtype)
    assert (off <= (0.501 * delivery.encoding.scales if reach is None else reach)).all()


def test_the_whole_folder_of_data_is_read_and_the_delivery_is_not(folder):
    table = pq.read_table(folder / "data")
    assert len(table) == ROWS + 10
    expected = np.concatenate([by_torch(folder, "test"), by_torch(folder)])
    assert np.array_equal(mole.decode(table, folder), expected)
    with pytest.raises(pa.ArrowInvalid):  # which is why the card says so
        pq.read_table(folder)


def test_the_code_of_the_card_runs(folder, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder.parent / "cache"))
    monkeypatch.chdir(folder.parent)
    blocks = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    exec(blocks[0], names)
    exec(re.sub(r"^images = ", "found = *globals().get('found', ()), ", blocks[1], flags=re.M), names)
    both = np.concatenate([by_torch(folder, "test"), by_torch(folder)])
    for found, expected in zip(names["found"], (both, by_torch(folder), by_torch(folder)), strict=True):
        assert np.array_equal(found, expected)
    assert len(names["data"]) == ROWS


def test_labels_have_the_names_of_classes(folder):
    rows = loaded(folder)
    assert rows.features["label"].names == list(CLASSES)
    assert rows["label"][:] == MorphedDataset(folder).labels.tolist()
    assert rows.features["label"].int2str(1) == CLASSES[1]


def test_one_row_is_one_sample(folder):
    expected = by_torch(folder)[7]
    rows = loaded(folder)
    for one in (rows[7], np.asarray(rows[7][Delivery.open(folder).manifest.column]).reshape(3, 8, 8)):
        assert np.array_equal(mole.decode(one, folder), expected)


@pytest.fixture(scope="module")
def signals(tmp_path_factory):
    """A delivery of signals with one channel, whose shape is that of a table with one row."""
    place, shape = tmp_path_factory.mktemp("signals"), (1, 16)
    rng = np.random.default_rng(0)
    np.savez(place / "d.npz", x_train=rng.random((5, *shape)).astype(np.float32), y_train=range(5))
    weight = rng.normal(size=(4, 1, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=shape, padding=1)
    key = mole.MorphKey.generate(shape)
    mole.deliver(place / "d.npz", layer, key, place / "d", allow_copying_layer=True)
    return place / "d"


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_table_of_one_row_is_still_a_table(signals, count):
    table = pq.read_table(signals / "data").slice(0, count)
    expected = by_torch(signals)[:count]
    frame = polars.from_arrow(table.select(["image"]))
    flat = np.asarray(table["image"].to_pylist(), np.float32).reshape(count, 16)
    batch = loaded(signals)[:count]
    forms = [table, table["image"], frame, frame["image"], frame.to_pandas(), flat, batch]
    for rows in forms if count else forms[:4]:
        found = mole.decode(rows, signals)
        assert found.shape == (count, 1, 16)
        assert np.array_equal(found, expected)
    if count:
        assert np.array_equal(mole.decode(loaded(signals)[0], signals), expected[0])


def test_who_asks_for_images_of_8_bits_is_not_given_wrong_ones(folder):
    is_int8 = Delivery.open(folder).manifest.dtype == "int8"
    readers = {
        "pyarrow": KeyError,
        "polars": polars.exceptions.ColumnNotFoundError,
        "datasets": (KeyError, ValueError),
        "pandas": KeyError,
    }
    for how, error in readers.items():
        rows = read(how, folder)
        if is_int8:
            with pytest.raises(error):
                _ = rows["image"]
        else:
            assert len(rows["image"]) == ROWS


def test_what_is_not_of_the_delivery_is_refused(folder):
    delivery = Delivery.open(folder)
    decoded, is_int8 = by_torch(folder), delivery.manifest.dtype == "int8"
    wrong = {
        "twice": decoded if is_int8 else decoded.astype(np.int8),
        "shape": np.zeros((4, 3, 8, 9), delivery.manifest.dtype),
        "column": {"pixels": [[0] * 192]},
        "table": pa.table({"pixels": [[0] * 192]}),
        "lists": {delivery.manifest.column: [[0] * 192, [0] * 191]},
        "no numbers": pa.array(["a"]),
        "holes": pa.array([[None] * 192]),
    }
    if is_int8:
        wrong["beyond"] = np.full((1, 192), 128)
    for what, rows in wrong.items():
        with pytest.raises(ShapeError, match="as they were read"):
            pytest.fail(f"{what}: {mole.decode(rows, delivery)}")


def test_a_shard_has_its_scales(folder):
    delivery = Delivery.open(folder)
    for name in delivery.shard_names():
        metadata = pq.read_schema(folder / name).metadata
        assert (b"scales" in metadata) == (delivery.manifest.dtype == "int8")
        if b"scales" in metadata:
            scales = np.frombuffer(base64.b64decode(metadata[b"scales"]), "<f4")
            assert np.array_equal(scales, delivery.encoding.scales)


def test_a_moved_delivery_reads_the_same(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "elsewhere")
    rows = read("polars", folder)
    assert np.array_equal(mole.decode(rows, tmp_path / "elsewhere"), by_torch(folder))
