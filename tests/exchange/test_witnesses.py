"""Every shard proves that it was made with the key of the augmented layer, to somebody who has no key."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mole
from checked_files import save_unaltered
from command import call, right
from deliveries import make_key, make_layer, tensors, write_npz
from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.exchange.facts import FileFacts
from mole.exchange.manifest import Manifest
from mole.exchange.probes import MAX_PROBE_ERROR, TENSORS, load_probes, save_probes
from mole.exchange.shards import DTYPES, Encoding, save_encoding
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.keys.key import augment
from mole.sources.bundled import fashion_mnist
from mole.sources.opening import open_source
from mole.storage.checked import load_checked
from mole.storage.stores import LocalStore, digest_of

SHARD = "data/train-00003-of-00007.parquet"
FIRST = "data/test-00000-of-00002.parquet"
LATE = "data/train-00004-of-00006.parquet"


def reseal(folder, name) -> None:
    """Put the right checksum of a changed file into the manifest."""
    store = LocalStore(folder)
    manifest = Manifest.read(store)
    digest, size = digest_of(store, name)
    Manifest(**{**vars(manifest), "files": {**manifest.files, name: FileFacts(size, digest)}}).write(store)


def wrong(folder) -> dict[str, str]:
    """What verify does not like about a delivery."""
    return {check.what: check.detail for check in verify(LocalStore(folder)) if check.holds is False}


def data_of(store):
    """What verify says of the data."""
    return next(check for check in verify(store) if check.what == "data")


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
    expected = {"data": f"{SHARD}: not made with the key of the augmented layer"}
    if dtype == "int8":
        expected["rows"] = "split 'train' has a shard with other scales than scales.safetensors"
    assert wrong(folder) == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_right_row_ids_do_not_help_it(source, tmp_path, dtype):
    """The same rows under another key, with the ids and labels that the delivery has."""
    folder, key, other = tmp_path / "d", make_key(), make_key(1)
    deliver(source, make_layer(), key, LocalStore(folder), dtype=dtype, rows_per_shard=16)
    encoding = Delivery.open(folder).encoding
    table = pq.read_table(folder / SHARD)
    stored, column = tensors(table, (192,)), table.schema.field(1)
    rows = encoding.encode(other.morphing.morph(key.morphing.unmorph(encoding.decode(stored))))
    images = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 192)
    pq.write_table(table.set_column(1, column, images), folder / SHARD)
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
    assert witnesses_of(tmp_path / "d").shards.tolist() == list(range(30))


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
    told = "no shard could be tested; 1 hold zeros alone, which any layer fits"
    assert data_of(store) == ("data", True, told)


def test_a_shard_with_one_bright_image_has_a_witness(tmp_path, rng):
    """However late it comes: 0.3 looked at the first four rows alone."""
    layer = mole.FirstLayer.conv(make_layer().weight, None, input_shape=(3, 8, 8), padding=1)
    images = np.zeros((60, 8, 8, 3), np.uint8)
    images[rng.integers(60)] = rng.integers(256, size=(8, 8, 3))
    np.savez(tmp_path / "d.npz", x=images)
    for seed in range(4):  # each with an order of its own
        store = LocalStore(tmp_path / str(seed))
        deliver(open_source(str(tmp_path / "d.npz")), layer, make_key(seed), store)
        assert data_of(store) == (
            "data",
            True,
            "1 of 1 shards were tested, on one row each, and the layer fits them",
        )


@pytest.mark.parametrize("core", ["orthogonal", "whitened"])
def test_clothes_in_8_bits_have_witnesses_in_every_shard(tmp_path, core):
    """As in the demo: what 8 bits do to whitened images looked too large for a witness."""
    images = fashion_mnist()["x_private"][:, ::2, ::2]
    weight = np.random.default_rng(5).uniform(-0.2, 0.4, size=(4, 1, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(
        weight,
        None,
        input_shape=(1, 14, 14),
        padding=1,
        normalisation=mole.Normalisation((0.286,), (0.353,)),
    )
    sample = {} if core == "orthogonal" else {"sample": layer.plain(images[:, np.newaxis])}
    folders = [tmp_path / "0", tmp_path / "1"]
    np.savez(tmp_path / "d.npz", x=images[:600])
    for seed, folder in enumerate(folders):
        key = mole.MorphKey.generate((1, 14, 14), core=core, insecure_seed=bytes([seed] * 32), **sample)
        deliver(tmp_path / "d.npz", layer, key, folder, dtype="int8", rows_per_shard=100)
        assert data_of(LocalStore(folder)).holds is True
        assert witnesses_of(folder).shards.tolist() == list(range(6))
    ids = [pq.read_table(folder / LATE)["row_id"] for folder in folders]
    foreign = pq.read_table(folders[1] / LATE)
    position = foreign.schema.get_field_index("row_id")
    pq.write_table(foreign.set_column(position, foreign.schema.field(position), ids[0]), folders[0] / LATE)
    reseal(folders[0], LATE)
    assert wrong(folders[0])["data"] == f"{LATE}: not made with the key of the augmented layer"


def test_without_witnesses_nothing_is_called_right(source, tmp_path):
    folder, store = tmp_path / "d", LocalStore(tmp_path / "d")
    deliver(source, make_layer(), make_key(), store, rows_per_shard=16)
    probes, witnesses = load_probes(store, Manifest.read(store))
    nothing = "nothing shows whether the layer fits"
    some = f"8 of 9 shards were tested, on one row each, and the layer fits them; {nothing} "
    for kept, told in (
        (0, f"no shard could be tested; {nothing} {FIRST} and 8 more"),
        (8, some + SHARD.replace("3-", "6-")),
    ):
        save_probes(probes, type(witnesses)(*(array[:kept] for array in witnesses)), store)
        reseal(folder, "probes.safetensors")
        assert data_of(store) == ("data", None, told)
    done = call("verify", "d", cwd=tmp_path)
    assert done.returncode == 0
    assert "data             not checked: 8 of 9 shards were tested, on one row each" in done.stdout
    assert right("verify", "d", cwd=tmp_path)["data"]["holds"] is None


def test_a_claimed_error_does_not_hide_another_key(source, tmp_path):
    """Nor do probes whose features are large: both made the bound of 0.3 as wide as one likes."""
    folder, key, other, layer = tmp_path / "d", make_key(), make_key(1), make_layer()
    deliver(source, layer, key, LocalStore(folder), rows_per_shard=16)
    delivery = Delivery.open(folder)
    table = pq.read_table(folder / SHARD)
    rows = table["image"].combine_chunks().flatten().to_numpy().reshape(-1, 192)
    rows = other.morphing.morph(key.morphing.unmorph(rows))
    images = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 192)
    pq.write_table(table.set_column(1, table.schema.field("image"), images), folder / SHARD)
    probes, witnesses = delivery.probes()
    large = 100 * probes.stored
    features = delivery.layer().features(large).reshape(probes.features.shape)
    save_probes(probes._replace(stored=large, features=features), witnesses, delivery.store)
    for name in (SHARD, "probes.safetensors"):
        reseal(folder, name)
    replace(Manifest.read(delivery.store), probe_error=MAX_PROBE_ERROR).write(delivery.store)
    assert wrong(folder) == {"data": f"{SHARD}: not made with the key of the augmented layer"}


def test_further_data_has_none(source, tmp_path):
    store = LocalStore(tmp_path / "d")
    deliver(source, make_layer(), make_key(), store, layer_dtype=None)
    assert [check.what for check in verify(store)] == ["manifest", "files", "rows"]


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


@pytest.mark.parametrize("name", TENSORS)
def test_a_number_in_the_place_of_a_tensor(one_delivery, tmp_path, name):
    folder, store = tmp_path / "d", LocalStore(tmp_path / "d")
    shutil.copytree(one_delivery, folder)
    tensors, metadata = load_checked(folder / "probes.safetensors")
    number = np.zeros((), tensors[name].dtype)
    save_unaltered(folder / "probes.safetensors", {**tensors, name: number}, metadata)
    with pytest.raises(DeliveryError, match="does not hold probes"):
        load_probes(store, Manifest.read(store))


@pytest.mark.parametrize(
    "scales",
    [np.ones(191, np.float32), np.ones((), np.float32), np.ones((1, 192), np.float32),
     np.full(192, np.nan, np.float32), np.ones(192)],
    ids=["short", "number", "axes", "nan", "double"],
)  # fmt: skip
def test_scales_that_do_not_fit(one_delivery, tmp_path, scales):
    folder, store = tmp_path / "d", LocalStore(tmp_path / "d")
    shutil.copytree(one_delivery, folder)
    assert Delivery.open(folder).encoding.scales.shape == (192,)
    save_encoding(store, Encoding("int8", scales))
    with pytest.raises(DeliveryError, match=r"scales\.safetensors does not hold scales"):
        _ = Delivery.open(folder).encoding


@pytest.fixture(scope="module")
def one_delivery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    data = write_npz(folder / "data.npz", train=20, test=0)
    deliver(open_source(str(data)), make_layer(), make_key(), LocalStore(folder / "d"), dtype="int8")
    return folder / "d"
