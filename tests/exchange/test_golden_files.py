"""Files that an earlier version wrote open for ever: saving and loading cannot drift together."""

import json
from pathlib import Path

import numpy as np
import pyrage

import mole
from mole.provider.keys.key_file import write_key_text

FOLDER = Path(__file__).parents[1] / "golden"
FACTS = json.loads((FOLDER / "files.json").read_text())
SEED = bytes.fromhex(FACTS["seed"])


def test_the_key():
    path = FOLDER / "provider.key.age"
    key = mole.MorphKey.load(path, identities=[FACTS["identity"]])
    assert key.fingerprint == FACTS["fingerprint"]
    identity = pyrage.x25519.Identity.from_str(FACTS["identity"])
    assert pyrage.decrypt(path.read_bytes(), [identity]).decode() == FACTS["text"]
    assert write_key_text(key.parameters, SEED) == FACTS["text"]


def test_the_first_layer():
    layer = mole.load(FOLDER / "first-layer.safetensors")
    assert layer.kind == "conv2d"
    assert layer.weight.ravel().tolist() == FACTS["weight"]
    assert layer.bias.tolist() == FACTS["bias"]
    assert (layer.input_shape, layer.output_shape) == ((1, 4, 4), (2, 4, 2))
    assert (layer.stride, layer.padding, layer.dilation) == ((1, 2), ((0, 1), (1, 0)), (1, 1))
    assert layer.normalisation == mole.Normalisation((0.5,), (0.25,))


def test_the_augmented_layer():
    augmented = mole.load(FOLDER / "augmented-layer.safetensors")
    key = mole.MorphKey.generate((1, 4, 4), insecure_seed=SEED)
    again = mole.augment(mole.load(FOLDER / "first-layer.safetensors"), key)
    assert augmented.key_fingerprint == FACTS["fingerprint"]
    assert np.allclose(augmented.matrix, again.matrix, atol=1e-6)
    assert np.array_equal(augmented.bias, again.bias)


def test_the_augmented_layer_in_factors(tmp_path):
    golden = FOLDER / "augmented-layer-factored.safetensors"
    augmented = mole.load(golden)
    key = mole.MorphKey.generate((1, 4, 4), insecure_seed=SEED)
    kernels = np.cos(np.arange(12 * 9, dtype=np.float32) ** 2).reshape(12, 1, 3, 3)
    layer = mole.FirstLayer.conv(
        kernels, np.arange(12, dtype=np.float32), input_shape=(1, 4, 4), stride=2, padding=1
    )
    again = mole.augment(layer, key, form="factored")
    assert augmented.form == again.form == "factored"
    for name in ("weight", "mixing", "bias"):
        assert np.allclose(getattr(augmented, name), getattr(again, name), atol=1e-6), name
    assert augmented.geometry == again.geometry
    mole.save(augmented, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == golden.read_bytes()


def test_what_is_saved_today_has_the_same_bytes_but_for_the_order_of_the_header(tmp_path):
    golden = FOLDER / "first-layer.safetensors"
    mole.save(mole.load(golden), tmp_path / "again")
    assert len((tmp_path / "again").read_bytes()) == golden.stat().st_size
    assert (tmp_path / "again").read_bytes()[-40:] == golden.read_bytes()[-40:]
