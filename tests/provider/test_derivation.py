"""A fixed test key must derive the same core and the same channel order for ever."""

import json
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

import mole
from mole.errors import DeliveryError
from mole.provider.keys.derivation import KeyParameters, WordStream, derive_bytes
from mole.provider.row_numbers import RowNumbers
from mole.scheme.whitening import Whitening

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "derivation.json").read_text())


def golden_key(vector: dict) -> mole.MorphKey:
    shape, seed = tuple(vector["input_shape"]), bytes.fromhex(vector["seed"])
    if vector["core"] == "whitened":  # estimating it again could differ in the last bit elsewhere
        whitening = Whitening(np.array(vector["whitening"], dtype=np.float32))
        parameters = KeyParameters(shape, vector["kappa"], "whitened", whitening=whitening.digest)
        return mole.MorphKey(parameters, seed, whitening)
    return mole.MorphKey.generate(shape, kappa=vector["kappa"], core=vector["core"], insecure_seed=seed)


@pytest.mark.parametrize("vector", GOLDEN["keys"], ids=lambda v: f"{v['core']}-kappa{v['kappa']}")
def test_golden_keys(vector):
    key = golden_key(vector)
    assert np.abs(key.morphing.core.matrix - np.array(vector["matrix"])).max() < 1e-9
    assert key.channel_order(16).tolist() == vector["channel_order_16"]
    assert key.fingerprint == vector["fingerprint"]
    assert key.parameters.draw == vector["draw"]


def test_golden_numbers_follow_the_specification():
    """docs/format.md in a few lines of Python, without the code under test."""
    vector = next(v for v in GOLDEN["keys"] if v["core"] == "gaussian")
    seed, q = bytes.fromhex(vector["seed"]), len(vector["matrix"])
    shape = "x".join(map(str, vector["input_shape"]))
    info = (
        f"morphed-learning/v1/core/shape={shape}/kappa={vector['kappa']}/core=gaussian/layout=rows"
        f"/draw={vector['draw']}/whitening=-"
    )
    import hashlib
    import hmac

    pseudo_random_key = hmac.digest(bytes(32), seed, hashlib.sha256)
    sub_key = hmac.digest(pseudo_random_key, info.encode() + b"\x01", hashlib.sha256)
    stream = Cipher(algorithms.ChaCha20(sub_key, bytes(16)), None).encryptor().update(bytes(8 * q * q))
    words = [int.from_bytes(stream[i : i + 8], "little") >> 11 for i in range(0, len(stream), 8)]
    numbers = []
    for v, w in zip(words[::2], words[1::2], strict=True):
        radius, angle = (-2 * np.log((v + 1) / 2**53)) ** 0.5, 2 * np.pi * w / 2**53
        numbers += [radius * np.cos(angle), radius * np.sin(angle)]
    expected = np.reshape(numbers, (q, q)) / q**0.5
    assert np.abs(expected - np.array(vector["matrix"])).max() < 1e-9


def test_row_numbers_follow_the_specification():
    """docs/format.md once more, for the rows of a delivery."""
    key = mole.MorphKey.generate((1, 4, 4), insecure_seed=bytes(range(32)))

    def words(purpose: str) -> list[int]:
        sub_key = derive_bytes(bytes(range(32)), key.parameters.info(purpose))
        stream = Cipher(algorithms.ChaCha20(sub_key, bytes(16)), None).encryptor().update(bytes(8 * 9))
        return [int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8)]

    rows = RowNumbers(key, "id", "train", 9)
    drawn = words("row-order/id/train/9")
    assert rows.order.tolist() == sorted(range(9), key=lambda sample: drawn[sample])
    assert rows.ids == [f"{word:016x}" for word in words("row-ids/id/train/9")]
    assert rows.samples_of(rows.ids[3:]) == rows.order[3:].tolist()
    assert rows.missing(rows.ids[3:]) == sorted(rows.order[:3].tolist())
    others = [
        RowNumbers(key, *which) for which in (("other", "train", 9), ("id", "test", 9), ("id", "train", 8))
    ]
    assert not any({*rows.ids} & {*other.ids} for other in others)
    with pytest.raises(DeliveryError, match="not made with this key"):
        others[0].samples_of(rows.ids)


def test_streams_of_different_purposes_share_nothing():
    seed = bytes(range(32))
    words = [WordStream(seed, info).take(64).tolist() for info in ("a", "b", "core")]
    assert len({word for stream in words for word in stream}) == 192
    assert derive_bytes(seed, "a") != derive_bytes(seed, "b") != derive_bytes(bytes(32), "b")


def test_chunks_do_not_show_in_the_stream(monkeypatch):
    whole = WordStream(bytes(32), "chunks").normals(1089)
    monkeypatch.setattr("mole.provider.keys.derivation.WORDS_AT_ONCE", 14)
    assert np.array_equal(WordStream(bytes(32), "chunks").normals(1089), whole)
    assert np.array_equal(WordStream(bytes(32), "chunks").normals(101), whole[:101])


def test_normal_numbers_are_normal():
    numbers = WordStream(bytes(range(32)), "normal").normals(160_000)
    assert abs(numbers.mean()) < 0.01
    assert abs(numbers.std() - 1) < 0.01
    assert abs((numbers**4).mean() - 3) < 0.1
    assert abs(np.corrcoef(numbers[::2], numbers[1::2])[0, 1]) < 0.01


def test_orders_are_even():
    counts = np.zeros((4, 4))
    for index in range(2000):
        counts[np.arange(4), WordStream(index.to_bytes(32, "big"), "order").order(4)] += 1
    assert np.abs(counts - 500).max() < 100  # five standard deviations of 19


def test_parameters_of_a_key_change_everything():
    def core(**arguments) -> np.ndarray:
        key = mole.MorphKey.generate((2, 4, 4), insecure_seed=bytes(32), **arguments)
        return key.morphing.core.matrix

    assert not np.allclose(core(kappa=2), core(kappa=1)[:16, :16])
    assert not np.allclose(core(core="gaussian"), core())


def test_a_whitening_is_named_by_its_bytes():
    one, other = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    other[0, 0] = np.nextafter(np.float32(1), np.float32(2))
    assert Whitening(one).digest == Whitening(one.copy(order="F")).digest
    assert Whitening(one).digest != Whitening(other).digest


def test_the_order_of_tiles_follows_the_specification():
    """docs/format.md once more, for shuffled tiles."""
    seed = bytes(range(32))
    key = mole.MorphKey.generate((1, 16, 16), tile=4, shuffle_tiles=True, insecure_seed=seed)
    info = (
        "morphed-learning/v1/tile-order/shape=1x16x16/kappa=16/core=orthogonal/layout=shuffled-tiles"
        "/draw=0/whitening=-"
    )
    stream = Cipher(algorithms.ChaCha20(derive_bytes(seed, info), bytes(16)), None).encryptor()
    words = np.frombuffer(stream.update(bytes(8 * 16)), "<u8").tolist()
    expected = sorted(range(16), key=lambda place: words[place])
    assert key.morphing.tile_order.tolist() == expected
    assert expected == [6, 0, 8, 3, 4, 12, 10, 1, 5, 14, 13, 15, 2, 9, 11, 7]
