"""Every shard proves that it was made with the key of the augmented layer, to somebody who has no key."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mole
from deliveries import make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import FileFacts, Manifest
from mole.exchange.probes import load_probes, save_probes
from mole.exchange.shards import DTYPES
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.keys.key import augment
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore, digest_of

SHARD = "data/train-00003-of-00007.parquet"


def reseal(folder, name) -> None:
    """Put the right checksum of a changed file into the manifest."""
    store = LocalStore(folder)
    manifest = Manifest.read(store)
    digest, size = digest_of(store, name)
    Manifest(**{**vars(manifest), "files": {**manifest.files, name: FileFacts(size, digest)}}).write(store)


def wrong(folder) -> dict[str, str]:
    """What verify does not like about a delivery."""
    return {check.what: check.detail for check in verify(LocalStore(folder)) if not check.holds}


def witnesses_of(folder):
    store = LocalStore(folder)
    return load_probes(store, Manifest.read(store))[1]


@pytest.fixture
def source(tmp_path):
    return open_source(str(write_npz(tmp_path / "data.npz")))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layer_dtype", ["float32", "float16"])
def test_a_shard_of_another_key_is_found_and_named(source, tmp_path, dtype, layer_dtype):
    options = {"dtype": dtype, "layer_dtype": layer_dtype, "rows_per_shard": 16}
    for seed in (0, 1):
        deliver(source, make_layer(), make_key(seed), LocalStore(tmp_path / str(seed)), **options)
    folder = tmp_path / "0"
    assert wrong(folder) == {}
    shutil.copy(tmp_path / "1" / SHARD, folder / SHARD)
    reseal(folder, SHARD)
    assert wrong(folder) == {"data": f"{SHARD}: not made with the key of the augmented layer"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_right_row_ids_do_not_help_it(source, tmp_path, dtype):
    """The same rows under another key, with the ids and labels that the delivery has."""
    folder, key, other = tmp_path / "d", make_key(), make_key(1)
    deliver(source, make_layer(), key, LocalStore(folder), dtype=dtype, rows_per_shard=16)
    encoding = Delivery.open(folder).encoding
    table = pq.read_table(folder / SHARD)
    stored = table["image"].combine_chunks().flatten().to_numpy().reshape(-1, 192)
    rows = encoding.encode(other.morphing.morph(key.morphing.unmorph(encoding.decode(stored))))
    images = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 192)
    pq.write_table(table.set_column(1, table.schema.field("image"), images), folder / SHARD)
    reseal(folder, SHARD)
    assert wrong(folder) == {"data": f"{SHARD}: not made with the key of the augmented layer"}


RIGHT = [(core, dtype) for core in ("orthogonal", "whitened", "gaussian") for dtype in DTYPES]
RIGHT.remove(("gaussian", "int8"))  # refused, because its features would be off by far


@pytest.mark.parametrize(("core", "dtype"), RIGHT)
def test_rounding_is_no_other_key(tmp_path, rng, core, dtype):
    """Smooth images, some black ones, and floats far beyond 1: what is right passes."""
    images = np.repeat(np.repeat(rng.random((600, 4, 4, 3)), 2, axis=1), 2, axis=2).astype(np.float32)
    images[::5] = 0
    layer = make_layer()
    if core == "whitened":
        key = make_key(core=core, sample=layer.plain(images.transpose(0, 3, 1, 2)))
    else:
        key = make_key(7, core=core)
        images *= 1 if dtype == "int8" else 1000
        layer = mole.FirstLayer.conv(layer.weight, layer.bias, input_shape=(3, 8, 8), padding=1)
    np.savez(tmp_path / "d.npz", x=images)
    deliver(
        open_source(str(tmp_path / "d.npz")), layer, key, LocalStore(tmp_path / "d"),
        dtype=dtype, rows_per_shard=20,
    )  # fmt: skip
    assert wrong(tmp_path / "d") == {}
    witnesses = witnesses_of(tmp_path / "d")
    assert len(witnesses.shards) >= 25  # of 30: four tries a shard may all be black


def test_they_show_what_the_receiver_can_compute(source, tmp_path):
    folder, key, layer = tmp_path / "d", make_key(), make_layer()
    deliver(source, layer, key, LocalStore(folder), rows_per_shard=16)
    witnesses = witnesses_of(folder)
    assert witnesses.shards.tolist() == list(range(9))
    augmented = augment(layer, key)
    files = [folder / name for name in Delivery.open(folder).shard_names()]
    for file, row_id, where, true in zip(
        files, witnesses.row_ids().values(), witnesses.positions, witnesses.features, strict=True
    ):
        table = pq.read_table(file)
        row = table["image"][table["row_id"].to_pylist().index(row_id)].values.to_numpy()
        assert np.allclose(augmented.features(row[np.newaxis]).reshape(-1)[where], true, atol=1e-4)


def test_black_images_have_no_witness_and_pass(tmp_path):
    layer = mole.FirstLayer.conv(make_layer().weight, None, input_shape=(3, 8, 8), padding=1)
    np.savez(tmp_path / "d.npz", x=np.zeros((20, 8, 8, 3), np.uint8))
    store = LocalStore(tmp_path / "d")
    deliver(open_source(str(tmp_path / "d.npz")), layer, make_key(), store)
    data = next(check for check in verify(store) if check.what == "data")
    assert data == ("data", True, "0 of 1 shards have a witness, and the layer fits each")


def test_further_data_has_none(source, tmp_path):
    store = LocalStore(tmp_path / "d")
    deliver(source, make_layer(), make_key(), store, layer_dtype=None)
    assert [check.what for check in verify(store)] == ["manifest", "signature", "files", "rows"]


def test_a_foreign_shard_in_an_unfinished_delivery_is_refused(source, tmp_path):
    options = {"rows_per_shard": 16}
    for seed in (0, 1):
        deliver(source, make_layer(), make_key(seed), LocalStore(tmp_path / str(seed)), **options)
    shutil.copy(tmp_path / "1" / SHARD, tmp_path / "0" / SHARD)
    manifest = Manifest.read(LocalStore(tmp_path / "0"))
    (tmp_path / "0" / "manifest.json").unlink()
    (tmp_path / "0" / "unfinished.json").write_text(f'{{"delivery_id": "{manifest.delivery_id}"}}')
    with pytest.raises(DeliveryError, match=f"{SHARD} holds rows that are not of this delivery"):
        deliver(source, make_layer(), make_key(), LocalStore(tmp_path / "0"), **options)


@pytest.mark.parametrize(
    "change",
    [
        {"shards": np.array([99])},
        {"positions": np.array([[1 << 40] * 64])},
        {"positions": np.array([[-1] * 64])},
        {"positions": np.zeros((1, 3), np.int64)},
        {"features": np.zeros((1, 64), np.int64)},
        {"rows": np.zeros(2, np.uint64)},
    ],
)
def test_nonsense_is_found_and_not_tripped_over(source, tmp_path, change):
    folder, store = tmp_path / "d", LocalStore(tmp_path / "d")
    deliver(source, make_layer(), make_key(), store, rows_per_shard=100)
    probes, witnesses = load_probes(store, Manifest.read(store))
    one = type(witnesses)(*(array[:1] for array in witnesses))
    save_probes(probes, one, store)
    reseal(folder, "probes.safetensors")
    assert wrong(folder) == {}
    save_probes(probes, one._replace(**change), store)
    reseal(folder, "probes.safetensors")
    assert "does not hold probes" in wrong(folder)["augmented layer"]
