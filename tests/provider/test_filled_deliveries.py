"""Samples that tiles do not fill, from delivery to attached network and back."""

import hashlib
import json

import numpy as np
import pytest
import torch
from torch import nn

import mole
from command import call
from deliveries import contents
from filled import CASES, WHOLE, delivered, key_of, model_of
from mole.errors import DeliveryError, LayerFileError, ParameterError, UnsupportedLayerError
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import LARGEST_VERSION, Manifest
from mole.provider.deliver import deliver
from mole.scheme.filling import filled_layer
from mole.storage.checked import load_checked, save_checked
from mole.storage.stores import LocalStore
from mole.torch import MorphedDataset, attach, export_first_layer
from secrets_kept import DEVELOPER, RECIPIENT

SMALL = "28x28 in tiles of 8"


def in_order(delivery, name, samples):
    """The delivered rows' own samples, in the order of the data set."""
    table = {tuple(row.ravel()[:8]): index for index, row in enumerate(samples)}
    recovered = mole.recover(delivery, key_of(name))
    by_id = dict(zip(recovered["row_id_train"], recovered["x_train"], strict=True))
    ids = delivery.row_ids("train")
    return samples[[table[tuple(by_id[row_id].ravel()[:8])] for row_id in ids]]


@pytest.mark.parametrize("name", CASES)
def test_from_delivery_to_network_and_back(tmp_path, name):
    delivery, samples, layer = delivered(name, tmp_path)
    manifest = delivery.manifest
    assert (manifest.input_shape, manifest.plain_shape) == (WHOLE[name], CASES[name][1])
    assert manifest.layer_fingerprint == layer.fingerprint
    assert all(check.holds for check in mole.verify(delivery))
    recovered = mole.recover(delivery, key_of(name))
    assert np.array_equal(recovered["x_train"], samples)

    data = MorphedDataset(delivery, "train")
    morphed = torch.stack([data[index][0] for index in range(len(data))])
    assert morphed.shape[1:] == WHOLE[name]
    model, plain = model_of(name), model_of(name)
    attach(model, delivery.layer())
    images = torch.from_numpy(layer.plain(in_order(delivery, name, samples)))
    with torch.no_grad():
        expected = plain(images)[:, key_of(name).channel_order(layer.channels)]
        found = model(morphed)
        assert found.shape == expected.shape
        assert float((found - expected).norm() / expected.norm()) <= 1e-5
        other = torch.from_numpy(mole.morph(images.numpy(), key_of(name, seed=1)))
        assert float((model(other) - expected).norm() / expected.norm()) > 0.3
        attach(model, delivery.layer())  # once more, in place of itself
        assert torch.equal(model(morphed), found)


def test_in_8_bits(tmp_path):
    delivery, samples, _ = delivered(SMALL, tmp_path, dtype="int8", layer_dtype="float16")
    assert json.loads((tmp_path / "d" / "manifest.json").read_text())["version"] == 5
    assert all(check.holds for check in mole.verify(delivery))
    off = mole.recover(delivery, key_of(SMALL))["x_train"].astype(int) - samples
    assert np.abs(off).mean() < 3


def test_sealed_and_resumed(tmp_path):
    """What was made is made again, byte for byte, and only what is missing."""
    delivery, _, layer = delivered(SMALL, tmp_path)
    before = contents(tmp_path / "d")
    (tmp_path / "d" / "manifest.json").unlink()
    (tmp_path / "d" / "data" / "train-00001-of-00003.parquet").unlink()
    (tmp_path / "d" / "unfinished.json").write_text(
        json.dumps({"delivery_id": delivery.manifest.delivery_id})
    )
    deliver(str(tmp_path / "data.npz"), layer, key_of(SMALL), tmp_path / "d", rows_per_shard=8)
    assert contents(tmp_path / "d") == before


def test_a_whitened_core_learns_from_filled_samples(rng):
    sample = rng.normal(size=(400, 1, 14, 14)).astype(np.float32)
    key = mole.MorphKey.generate((1, 14, 14), tile=8, core="whitened", sample=sample)
    blocks = key.morphing.layout.to_blocks(mole.morph(sample, key))
    covariance = np.cov(blocks.astype(np.float64).T)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.5
    assert key.learnt.images == 400


def test_a_key_for_another_size_is_refused(tmp_path):
    _, _, layer = delivered(SMALL, tmp_path)
    for shape in ((1, 32, 40), (1, 24, 24)):
        key = mole.MorphKey.generate(shape, tile=8, insecure_seed=bytes(32))
        with pytest.raises(ParameterError, match="give the key for this layer"):
            deliver(str(tmp_path / "data.npz"), layer, key, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def resealed(folder, **changes):
    """The manifest of a delivery with other fields, its checksum put right."""
    content = json.loads((folder / "manifest.json").read_text())
    content = {**content, **changes, "seal": "0" * 64}
    text = json.dumps(content, indent=1).encode() + b"\n"
    text = text.replace(b"0" * 64, hashlib.sha256(text).hexdigest().encode(), 1)
    (folder / "manifest.json").write_bytes(text)
    return LocalStore(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"plain_shape": [1, 20, 28]}, "are not those that zeros make 1x32x32 of"),
     ({"plain_shape": [1, 32, 32]}, "are not those that zeros make 1x32x32 of"),
     ({"plain_shape": [1, 1 << 40, 28]}, "has more than"),
     ({"plain_shape": "all"}, "plain_shape"),
     ({"layout": "rows"}, "are not those"),
     ({"version": 2}, "'plain_shape' do not fit its version"),
     ({"version": LARGEST_VERSION}, "'protection' does not fit its version"),
     ({"version": LARGEST_VERSION + 1}, "upgrade it")],
)  # fmt: skip
def test_a_manifest_with_another_shape_is_refused(tmp_path, changes, words):
    delivered(SMALL, tmp_path)
    with pytest.raises(DeliveryError, match=words):
        Manifest.read(resealed(tmp_path / "d", **changes))


def test_a_layer_for_other_samples_is_found(tmp_path):
    """Its tiles are the same; only the zeros at the end differ."""
    delivered(SMALL, tmp_path)
    resealed(tmp_path / "d", plain_shape=[1, 27, 28])
    checks = {check.what: check for check in mole.verify(LocalStore(tmp_path / "d"))}
    assert checks["augmented layer"].holds is False
    assert "another delivery" in checks["augmented layer"].detail


def test_a_layer_file_with_another_shape_is_refused(tmp_path):
    delivery, _, layer = delivered(SMALL, tmp_path)
    file = tmp_path / "d" / "augmented-layer.safetensors"
    tensors, metadata = load_checked(file)
    assert json.loads(metadata["plain_shape"]) == [1, 28, 28]
    assert mole.load(file).network_shape == delivery.manifest.network_shape
    metadata.pop("sha256", None)
    save_checked(tmp_path / "wrong.safetensors", tensors, {**metadata, "plain_shape": "[1, 20, 20]"})
    with pytest.raises(LayerFileError, match="1x20x20 samples are not those"):
        mole.load(tmp_path / "wrong.safetensors")
    with pytest.raises(mole.MoleError, match="must not be negative"):
        mole.save(filled_layer(layer, (1, 32, 32)), tmp_path / "first.safetensors")


class Strict(nn.Module):
    """Takes images of one size only, as vision transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-2:] != (28, 28):
            raise ValueError("images of 28x28, please")
        return self.stem(x)


def test_a_network_that_insists_on_its_size_says_what_would_help(tmp_path):
    model = Strict()
    augmented = mole.augment(export_first_layer(model, (1, 28, 28)), key_of(SMALL))
    with pytest.raises(UnsupportedLayerError, match="tiles whose side divides those of 1x28x28") as refused:
        attach(model, augmented)
    assert "images of 28x28, please" in str(refused.value)
    assert isinstance(model.stem, nn.Conv2d)


def test_on_the_command_line(tmp_path):
    """Key, delivery, training, evaluation, further data, predictions, recovery, audit."""
    rng = np.random.default_rng(0)
    arrays = {}
    for split, count in (("train", 48), ("test", 24)):
        arrays[f"x_{split}"] = rng.integers(0, 256, (count, 1, 12, 12), dtype=np.uint8)
        arrays[f"y_{split}"] = rng.integers(0, 3, count)
    np.savez(tmp_path / "data.npz", **arrays)
    (tmp_path / "identity.txt").write_text(str(DEVELOPER))

    def mole_(*arguments):
        done = call(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    secret = ("--key", "provider.key", "--identity", "identity.txt")
    layer = ("--layer", "first.safetensors")
    mole_("export-layer", "--network", "small_vgg", "--input-shape", "1x12x12", "--classes", 3,
          "--out", "first.safetensors")  # fmt: skip
    said = mole_("keygen", *layer, "--tile", 8, "--recipient", RECIPIENT)
    assert "tiles of 8 do not fill 1x12x12 images: the key is for 1x16x16" in " ".join(said.split())
    mole_("deliver", "data.npz", *layer, *secret, "--out", "d", "--dtype", "int8")
    assert "plain shape" in mole_("info", "d")
    mole_("verify", "d")
    mole_("train", "d", "--epochs", 1, "--out", "model.safetensors", "--quiet")
    mole_("evaluate", "d", "--checkpoint", "model.safetensors", "--split", "test")
    np.savez(tmp_path / "more.npz", x_train=arrays["x_test"])
    mole_("morph", "more.npz", *layer, *secret, "--out", "requests")
    mole_("predict", "requests", "--checkpoint", "model.safetensors", "--out", "answers.parquet")
    assert Delivery.open(tmp_path / "requests").manifest.plain_shape == (1, 12, 12)
    mole_("recover", "requests", *secret, "--out", "back.npz")
    with np.load(tmp_path / "back.npz") as back:
        assert np.array_equal(back["x_train"], arrays["x_test"])
    mole_("recover", "requests", *secret, "--out", "pictures")
    assert len(list((tmp_path / "pictures").rglob("*.png"))) == 24
