"""Products through PyTorch: the same delivery but for the last bits, or one sentence."""

import sys

import numpy as np
import pytest

import mole
from deliveries import make_key, make_layer, write_npz
from mole.errors import MissingExtraError, ParameterError
from mole.provider.deliver import deliver
from mole.provider.device_product import DeviceProduct
from mole.scheme.block_product import multiply

pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_delivery_through_a_device_is_the_same_but_for_the_last_bits(tmp_path, monkeypatch, dtype):
    data, key, asked = write_npz(tmp_path / "data.npz"), make_key(), []
    multiply_there = DeviceProduct.__call__

    def counted(self, a, b, out):
        asked.append(len(a))
        multiply_there(self, a, b, out)

    monkeypatch.setattr(DeviceProduct, "__call__", counted)
    here, there = (
        mole.recover(
            deliver(data, make_layer(), key, tmp_path / name, dtype=dtype, device=device).delivery, key
        )
        for name, device in (("here", None), ("there", "cpu"))
    )
    assert sum(asked) >= 130  # every row went that way, and none of the other delivery
    assert set(here) == set(there)
    for name, values in here.items():
        if values.dtype != np.uint8:
            assert np.array_equal(values, there[name]), name
            continue
        off = np.abs(values.astype(np.int64) - there[name].astype(np.int64))
        assert off.max() <= (0 if dtype == "float32" else 3), name  # a value may round to the next level


def test_the_product_is_the_processors(rng):
    product, (a, b) = DeviceProduct("cpu"), rng.normal(size=(2, 48, 48)).astype(np.float32)
    out, expected = np.empty_like(a), np.empty_like(a)
    for matrix in (b, b.copy() * 2, b):  # another matrix is not mistaken for the one that it keeps
        product(a, matrix, out)
        multiply(a, matrix, expected)
        assert np.allclose(out, expected, atol=1e-4)
    assert "0." not in repr(product)


@pytest.mark.parametrize("device", ["cuda:99", "toaster", "meta\u202e\n"])
def test_a_device_that_is_not_there_is_one_sentence(tmp_path, device):
    data = write_npz(tmp_path / "data.npz")
    with pytest.raises(ParameterError, match="cannot be used here") as refused:
        deliver(data, make_layer(), make_key(), tmp_path / "out", device=device)
    assert "\n" not in str(refused.value)
    assert "\u202e" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_device_is_for_this_machine(tmp_path):
    data = write_npz(tmp_path / "data.npz")
    pytest.importorskip("ray")
    with pytest.raises(ParameterError, match="on this machine"):
        deliver(data, make_layer(), make_key(), tmp_path / "out", engine="ray", device="cpu")


def test_without_pytorch_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    data = write_npz(tmp_path / "data.npz")
    with pytest.raises(MissingExtraError, match=r"a device needs PyTorch: .*\[torch\]"):
        deliver(data, make_layer(), make_key(), tmp_path / "out", device="cpu")
