"""Large files are mapped: nothing is copied, nothing hostile gets through, and nobody changes the file."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mole.errors import LayerFileError
from mole.storage import mapped
from mole.storage.checked import load_checked, save_checked
from mole.storage.mapped import FileMapping, own_copy, tensors_in
from mole.storage.typed_json import FormatError, parse_json

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files are mapped on POSIX systems only")
TENSORS = {"weight": np.arange(4000, dtype=np.float32).reshape(40, 100), "half": np.ones(3, np.float16)}


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(mapped, "MAPPED_FROM_BYTES", 0)
    save_checked(tmp_path / "file", TENSORS, {"format": "x"})
    return tmp_path / "file"


def test_what_is_mapped_is_what_was_written(path):
    tensors, metadata = load_checked(path)
    assert metadata == {"format": "x"}
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert np.array_equal(tensors[name], tensor)
        with pytest.raises(ValueError, match="read-only"):
            tensors[name][0] = 7


def test_a_copy_of_ones_own_changes_neither_the_file_nor_another(path):
    before = path.read_bytes()
    weight = load_checked(path)[0]["weight"]
    one, other = own_copy(weight), own_copy(weight)
    assert isinstance(_root(one), FileMapping)  # nothing was copied
    one[:] = 0
    assert np.array_equal(other, TENSORS["weight"])
    assert np.array_equal(weight, TENSORS["weight"])
    assert np.array_equal(own_copy(weight), TENSORS["weight"])
    assert path.read_bytes() == before
    turned = own_copy(weight.T)  # not as it lies in the file: then it is copied
    assert not isinstance(_root(turned), FileMapping)
    assert np.array_equal(turned, TENSORS["weight"].T)


def test_a_file_that_is_replaced_stays_as_it_was_for_who_has_it(path):
    weight = load_checked(path)[0]["weight"]
    save_checked(path, {"weight": np.zeros(5)}, {"format": "y"})
    path.unlink()
    assert np.array_equal(own_copy(weight), TENSORS["weight"])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts the files that are open")
def test_no_file_stays_open(path):
    gc.collect()  # whatever other tests have left
    before = _open_files()
    tensors = load_checked(path)[0]
    copies = [own_copy(tensor) for tensor in tensors.values()]
    assert _open_files() > before
    del tensors, copies
    gc.collect()
    assert _open_files() == before


def test_one_bit_more_or_less_shows(path):
    content = bytearray(path.read_bytes())
    for at in (9, len(content) // 2, len(content) - 1):
        content[at] ^= 1
        path.write_bytes(content)
        with pytest.raises(LayerFileError, match=r"damaged|not a layer file"):
            load_checked(path)
        content[at] ^= 1
    path.write_bytes(content)
    load_checked(path)  # the negative twin


def entry(dtype="F32", shape=(2, 3), at=(0, 24)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(at)}


@pytest.mark.parametrize(
    "header",
    [
        {"a": entry(at=(0, 20))}, {"a": entry(shape=(2, 2))}, {"a": entry(at=(8, 32))},
        {"a": entry(at=(24, 0))}, {"a": entry(at=(-24, 0))}, {"a": entry(at=(0, 24, 24))},
        {"a": entry(shape=(-2, -3))}, {"a": entry(shape=(2**40, 2**40))}, {"a": entry(dtype="BF16")},
        {"a": entry(dtype=7)}, {"a": entry(shape=("2", 3))}, {"a": 7}, {}, {"a": entry(), "b": entry()},
        {"a": entry(), "b": entry(shape=(0, 2**62), at=(24, 24))}, {"a": entry(shape=[2, 3] + [1] * 70)},
        {"a": entry(shape=(4,), at=(0, 16)), "b": entry(shape=(4,), at=(8, 24))},
    ],
)  # fmt: skip
def test_headers_that_lie_about_their_tensors(header):
    content = bytearray(24)
    with pytest.raises(FormatError):
        tensors_in(content, parse_json(json.dumps(header)), 0)
    assert list(tensors_in(content, parse_json(json.dumps({"a": entry()})), 0)) == ["a"]


def test_tensors_that_lie_askew_are_copied():
    content = bytearray(3) + bytearray(np.arange(6, dtype="<f4").tobytes())
    found = tensors_in(content, parse_json(json.dumps({"a": entry()})), 3)["a"]
    assert found.flags.aligned
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


PROGRAM = """
import resource, sys
import torch
import mole
from mole.torch import attach, export_first_layer

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

torch.set_num_threads(1)
tiny = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3))  # what is loaded for any layer does not count
attach(tiny, mole.augment(export_first_layer(tiny, (1, 8, 8)), mole.MorphKey.generate((1, 8, 8))))
model = torch.nn.Sequential(torch.nn.Conv2d(1, 64, 8, stride=8, bias=False))
before, most_before = anonymous(), peak()
layer = mole.load(sys.argv[1])
module = attach(model, layer)
features = model(torch.ones(1, 1, 64, 64))
print(layer.nbytes // 1024, anonymous() - before, peak() - most_before, float(features.sum()))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads what Linux says of memory")
def test_attaching_a_large_layer_takes_no_memory_beside_the_file(tmp_path):
    pytest.importorskip("torch")
    weight = np.full((4096, 4096), 2.0**-12, np.float32)
    metadata = {
        "format": "mole-augmented-layer", "version": "1", "input_shape": "[1, 64, 64]",
        "output_shape": "[64, 8, 8]", "kappa": "1", "layout": '"rows"',
        "key_fingerprint": json.dumps("0" * 32),
    }  # fmt: skip
    save_checked(tmp_path / "layer", {"weight": weight}, metadata)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "layer")], capture_output=True, text=True, check=True
    )
    size, anonymous, peak, features = map(float, done.stdout.split())
    assert (size, features) == (65536, 4096)
    assert anonymous < 0.3 * size  # of its own
    assert peak < 1.5 * size  # with the pages of the file


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _root(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array
