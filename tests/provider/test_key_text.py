"""What stands in a key: short text, in which no line can be changed, and which is never shown."""

import pickle

import pyrage
import pytest

import mole
from mole.errors import KeyFileError
from mole.provider.keys.key_file import read_key_text, write_key_text
from small_keys import IDENTITY, SEED, small_key


@pytest.fixture
def key() -> mole.MorphKey:
    return small_key()


def test_what_is_no_key_is_said(tmp_path):
    path = tmp_path / "x.key"
    for content, words in [
        (b"hello", "not a Morphed Learning key"),
        (b"\xff\xfe", "not a Morphed Learning key"),
        (b"a: 1\na: 2\n", "not a Morphed Learning key"),
        (b"x" * 5000, "too long"),
        (b"mole-key: 2\nnew-thing: 1\n", "version 2 and this program knows 1: upgrade"),
        (b"mole-key: 1\n", "missing or unknown"),
    ]:
        path.write_bytes(pyrage.encrypt(content, [IDENTITY.to_public()]))
        with pytest.raises(KeyFileError, match=words):
            mole.MorphKey.load(path, identities=[str(IDENTITY)])
    path.write_bytes(b"in clear")
    with pytest.raises(KeyFileError, match=r"not a key \(an age file\)"):
        mole.MorphKey.load(path, "x")
    path.write_bytes(b"x" * 70_000)
    with pytest.raises(KeyFileError, match="too large"):
        mole.MorphKey.load(path, "x")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kappa: 2", "kappa: 4", "fingerprint does not match"),
        ("kappa: 2", "kappa: 5", "kappa = 5 does not divide"),
        ("input-shape: 1x4x4", "input-shape: " + "x".join(["999999937"] * 200), "cannot be used"),
        ("kappa: 2", "kappa: two", "its line 'kappa'"),
        ("core: orthogonal", "core: magic", "its line 'core'"),
        ("core: orthogonal", "core: whitened", "missing or unknown"),
        ("layout: rows", "layout: stars", "its line 'layout'"),
        ("input-shape: 1x4x4", "input-shape: 1x0x4", "its line 'input-shape'"),
        ("draw: 0", "draw: -1", "its line 'draw'"),
        ("seed: 00", "seed: 01", "fingerprint does not match"),
        ("seed: 00", "seed: 0", "its line 'seed'"),
    ],
)
def test_a_changed_line_is_noticed_and_never_shown(key, old, new, words):
    text = write_key_text(key.parameters, SEED)
    assert old in text
    with pytest.raises(KeyFileError, match=words) as caught:
        read_key_text(text.replace(old, new).encode(), "provider.key")
    assert SEED.hex()[2:20] not in str(caught.value)


def test_the_text_is_short_and_readable(key):
    text = write_key_text(key.parameters, SEED)
    assert text.splitlines() == [
        "# Morphed Learning key. Whoever has it can undo the morphing: keep it secret.",
        "mole-key: 1",
        f"fingerprint: {key.fingerprint}",
        "input-shape: 1x4x4",
        "kappa: 2",
        "core: orthogonal",
        "layout: rows",
        "draw: 0",
        f"seed: {SEED.hex()}",
    ]
    assert read_key_text(text.encode(), "x") == (key.parameters, SEED)


def test_the_secret_does_not_show(key, rng):
    sample = rng.normal(size=(50, 1, 4, 4))
    whitened = mole.MorphKey.generate((1, 4, 4), core="whitened", sample=sample, insecure_seed=SEED)
    for one in (key, whitened):
        for shown in (repr(one), str(one), f"{one}", repr(one.morphing), repr(one.parameters)):
            assert SEED.hex() not in shown
            assert repr(SEED) not in shown
            assert str(one.morphing.core.matrix[0, 0])[:8] not in shown
    for secret in (key, key.morphing, key.morphing.core):
        with pytest.raises(TypeError, match="never pickled"):
            pickle.dumps(secret)
