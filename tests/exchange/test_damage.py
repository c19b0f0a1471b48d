"""Damaged files: 1,000 of each kind, and every one is a MoleError, never another exception or a hang."""

import random
from pathlib import Path

import numpy as np
import pyrage
import pytest

import mole
from light_passphrases import save_lightly
from mole.errors import MoleError

IDENTITY = pyrage.x25519.Identity.generate()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Cut off, extended, a flipped bit, a changed byte, a run of noise, or a swapped piece."""
    data = bytearray(content)
    at = rng.randrange(len(data))
    match rng.randrange(6):
        case 0:
            del data[at:]
        case 1:
            data += rng.randbytes(rng.randint(1, 64))
        case 2:
            data[at] ^= 1 << rng.randrange(8)
        case 3:
            data[at] = rng.randrange(256)
        case 4:
            data[at : at + 16] = rng.randbytes(len(data[at : at + 16]))
        case 5:
            del data[at : at + rng.randint(1, 32)]
    return bytes(data)


def layer_bytes(tmp_path: Path, augmented: bool) -> bytes:
    weight = np.random.default_rng(0).normal(size=(4, 1, 2, 2)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, weight[:, 0, 0, 0], input_shape=(1, 4, 4))
    made = mole.augment(layer, mole.MorphKey.generate((1, 4, 4))) if augmented else layer
    mole.save(made, tmp_path / "whole")
    return (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("augmented", [False, True], ids=["first-layer", "augmented-layer"])
def test_a_thousand_damaged_layers(tmp_path, augmented):
    content = layer_bytes(tmp_path, augmented)
    rng, path = random.Random(1), tmp_path / "damaged"
    tried = 0
    while tried < 1000:
        broken = damaged(content, rng)
        if broken == content:
            continue
        path.write_bytes(broken)
        with pytest.raises(MoleError):
            mole.load(path)
        tried += 1


def test_every_single_flipped_bit_of_a_layer_is_noticed(tmp_path):
    content = layer_bytes(tmp_path, augmented=False)
    path = tmp_path / "flipped"
    for position in range(len(content)):
        broken = bytearray(content)
        broken[position] ^= 1 << position % 8
        path.write_bytes(broken)
        with pytest.raises(MoleError):
            mole.load(path)


@pytest.mark.parametrize("which", ["w.key", "w.key.whitening"])
def test_a_thousand_damaged_keys(tmp_path, which):
    sample = np.random.default_rng(0).normal(size=(50, 1, 4, 4))
    key = mole.MorphKey.generate((1, 4, 4), core="whitened", sample=sample)
    key.save(tmp_path / "w.key", recipients=[str(IDENTITY.to_public())])
    content = (tmp_path / which).read_bytes()
    rng, tried = random.Random(2), 0
    while tried < 1000:
        broken = damaged(content, rng)
        (tmp_path / which).write_bytes(broken)
        try:
            loaded = mole.MorphKey.load(tmp_path / "w.key", identities=[str(IDENTITY)])
        except MoleError:
            tried += 1
        else:
            # age ignores white space around its armour: only such a change may go unnoticed.
            assert broken.split() == content.split()
            assert loaded.fingerprint == key.fingerprint


def test_damaged_passphrase_keys(tmp_path):
    """Fewer, because some damage asks for more work than the file did."""
    path = tmp_path / "p.key"
    save_lightly(mole.MorphKey.generate((1, 4, 4)), path, "passphrase")
    assert mole.MorphKey.load(path, "passphrase").kappa == 1
    content, rng = path.read_bytes(), random.Random(3)
    for _ in range(100):
        broken = damaged(content, rng)
        if broken.split() == content.split():
            continue
        path.write_bytes(broken)
        with pytest.raises(MoleError):
            mole.MorphKey.load(path, "passphrase")
