"""What anyone can find out about a delivery without the key: damage, and parts that do not fit together."""

import random
from dataclasses import replace

import numpy as np
import pytest

import mole
from chosen_layout import cut
from deliveries import SMALL, contents, make_key, make_layer, write_npz
from mole.errors import DeliveryError
from mole.exchange.delivery import AUGMENTED, Delivery
from mole.exchange.facts import FileFacts
from mole.exchange.manifest import Manifest
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore, digest_of


@pytest.fixture
def source(tmp_path):
    return open_source(str(write_npz(tmp_path / "data.npz")))


def test_it_takes_a_delivery_its_address_or_its_store(source, tmp_path):
    folder = tmp_path / "out"
    made = deliver(source, make_layer(), make_key(), folder, **SMALL)
    checks = verify(made.delivery)
    what = ["manifest", "files", "rows", "augmented layer", "data"]
    assert [check.what for check in checks] == what
    assert all(check.holds for check in checks)
    for place in (folder, str(folder), LocalStore(folder), Delivery.open(folder)):
        assert verify(place) == checks
    with pytest.raises(DeliveryError, match="does not exist: give the folder of a delivery"):
        verify(tmp_path / "nowhere")


def test_any_flipped_bit_is_found(tmp_path):
    folder = tmp_path / "out"
    layer = mole.FirstLayer.conv(np.ones((1, 1, 2, 2)), None, input_shape=(1, 4, 4))
    np.savez(tmp_path / "tiny.npz", x=np.arange(96, dtype=np.uint8).reshape(6, 4, 4), y=np.arange(6))
    deliver(
        open_source(str(tmp_path / "tiny.npz")), layer,
        mole.MorphKey.generate((1, 4, 4), insecure_seed=bytes(32), **cut()), LocalStore(folder),
        dtype="int8", rows_per_shard=3,
    )  # fmt: skip
    assert len(contents(folder)) == 7
    rng = random.Random(0)
    for name, content in contents(folder).items():
        for _ in range(200):
            broken = bytearray(content)
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            (folder / name).write_bytes(broken)
            try:
                holds = all(check.holds for check in verify(LocalStore(folder)))
            except DeliveryError:
                holds = False
            assert not holds, name
        (folder / name).write_bytes(content)
    assert all(check.holds for check in verify(LocalStore(folder)))


def test_missing_and_foreign_files_are_found(source, tmp_path):
    folder = tmp_path / "out"
    deliver(source, make_layer(), make_key(), LocalStore(folder), **SMALL)
    (folder / "data" / "train-00000-of-00007.parquet").rename(folder / "data" / "spare.parquet")
    files = next(check for check in verify(LocalStore(folder)) if check.what == "files")
    assert not files.holds
    assert "train-00000-of-00007.parquet is missing" in files.detail
    assert "spare.parquet does not belong here" in files.detail


def test_a_layer_of_another_key_is_found_by_the_probes(source, tmp_path):
    """Checksums and all: a delivery whose layer and data were put together wrongly."""
    for seed in (0, 1):
        deliver(source, make_layer(), make_key(seed), LocalStore(tmp_path / str(seed)), **SMALL)
    store = LocalStore(tmp_path / "0")
    wrong = mole.load(tmp_path / "1" / "augmented-layer.safetensors")
    forged = replace(wrong, key_fingerprint=make_key(0).fingerprint)
    mole.save(forged, tmp_path / "0" / "augmented-layer.safetensors")
    manifest = Manifest.read(store)
    digest, size = digest_of(store, "augmented-layer.safetensors")
    files = {**manifest.files, "augmented-layer.safetensors": FileFacts(size, digest)}
    Manifest(**{**vars(manifest), "files": files}).write(store)
    layer = next(check for check in verify(store) if check.what == "augmented layer")
    assert not layer.holds
    assert "does not fit the probes" in layer.detail


@pytest.mark.parametrize("claimed", [float("inf"), float("nan"), 0.9, -1.0])
def test_a_claimed_error_does_not_let_any_layer_pass(source, tmp_path, rng, claimed):
    """A layer of random numbers, under a manifest that allows its features to be off by that much."""
    delivery = deliver(source, make_layer(), make_key(), tmp_path / "out", **SMALL).delivery
    layer = delivery.layer()
    random_weight = rng.normal(size=layer.weight.shape).astype(np.float32) * layer.weight.std()
    mole.save(replace(layer, weight=random_weight), tmp_path / "out" / AUGMENTED)
    digest, size = digest_of(delivery.store, AUGMENTED)
    files = {**delivery.manifest.files, AUGMENTED: FileFacts(size, digest)}
    replace(delivery.manifest, files=files, probe_error=claimed).write(delivery.store)
    try:
        wrong = {check.what: check.detail for check in verify(tmp_path / "out") if not check.holds}
    except DeliveryError as error:  # a manifest may not say such a thing in the first place
        wrong = {"augmented layer": str(error)}
    assert set(wrong) == {"augmented layer"}
    if claimed == 0.9:
        assert "off by 90 %, and more than 10 % is of no use: ask its sender" in wrong["augmented layer"]


def test_further_data_comes_without_a_layer(source, tmp_path):
    store = LocalStore(tmp_path / "requests")
    deliver(source, make_layer(), make_key(), store, layer_dtype=None, rows_per_shard=16)
    assert not {"augmented-layer.safetensors", "probes.safetensors"} & set(contents(tmp_path / "requests"))
    assert all(check.holds for check in verify(store))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("no error", "the manifest lists it, and has no error of its probes: ask its sender for another"),
        ("no layer", "the manifest has an error of its probes, and lists no layer: ask its sender for"),
    ],
)
def test_half_of_what_a_layer_needs_is_said(source, tmp_path, change, sentence):
    delivery = deliver(source, make_layer(), make_key(), tmp_path / "out", **SMALL).delivery
    manifest = delivery.manifest
    if change == "no error":
        manifest = replace(manifest, probe_error=None)
    else:
        (tmp_path / "out" / AUGMENTED).unlink()
        files = {name: facts for name, facts in manifest.files.items() if name != AUGMENTED}
        manifest = replace(manifest, files=files)
    manifest.write(delivery.store)
    checks = {check.what: check for check in verify(tmp_path / "out")}
    assert checks["files"].holds
    assert not checks["augmented layer"].holds
    assert sentence in checks["augmented layer"].detail


def test_a_manifest_with_an_unknown_number_type_is_refused(source, tmp_path):
    delivery = deliver(source, make_layer(), make_key(), tmp_path / "out", **SMALL).delivery
    replace(delivery.manifest, dtype="int4").write(delivery.store)
    with pytest.raises(DeliveryError, match="does not follow the format"):
        verify(tmp_path / "out")


def test_foreign_names_are_quoted_and_counted(source, tmp_path):
    """The manifest's words, names of files and splits are the other side's."""
    made = deliver(source, make_layer(), make_key(), tmp_path / "out", **SMALL).delivery
    evil = "\x1b[2J" + "x" * 500
    missing = {f"{evil}{number}": FileFacts(1, "0" * 64) for number in range(500)}
    replace(made.manifest, tool=evil, files={**made.manifest.files, **missing}).write(made.store)
    manifest, files = verify(tmp_path / "out")
    for check in (manifest, files):
        assert "\x1b" not in check.detail
        assert "\\x1b[2Jxxx" in check.detail
        assert len(check.detail) < 1000
    assert files.detail.endswith("; and 492 more")
