"""MNIST's idx files, packed and unpacked."""

import gzip

import numpy as np
import pytest

from mole.sources.opening import open_source
from source_files import idx_bytes, refusal


@pytest.fixture
def mnist(tmp_path, rng):
    arrays = {
        "train-images-idx3-ubyte": rng.integers(0, 256, (6, 28, 28), dtype=np.uint8),
        "train-labels-idx1-ubyte": rng.integers(0, 10, 6, dtype=np.uint8),
        "t10k-images-idx3-ubyte": rng.integers(0, 256, (2, 28, 28), dtype=np.uint8),
        "t10k-labels-idx1-ubyte": rng.integers(0, 10, 2, dtype=np.uint8),
    }
    return tmp_path, arrays


@pytest.mark.parametrize("kinds", [("",), (".gz",), ("", ".gz")])
def test_idx(mnist, kinds):
    folder, arrays = mnist
    for name, array in arrays.items():
        for kind in kinds:
            pack = gzip.compress if kind else bytes
            (folder / f"{name}{kind}").write_bytes(pack(idx_bytes(array)))
    source = open_source(str(folder))
    for split, prefix in (("train", "train"), ("test", "t10k")):
        images, labels = arrays[f"{prefix}-images-idx3-ubyte"], arrays[f"{prefix}-labels-idx1-ubyte"]
        assert source.splits[split].labels.tolist() == labels.tolist()
        for index, image in enumerate(images):
            np.testing.assert_array_equal(source.splits[split].read(index).values, image)


def test_two_sets_of_idx_files(mnist):
    folder, arrays = mnist
    for name in ("a", "b"):
        (folder / name).mkdir()
        file = "train-images-idx3-ubyte"
        (folder / name / file).write_bytes(idx_bytes(arrays[file]))
    assert "more than one data set" in refusal(folder)


def test_damaged_idx(mnist):
    folder, arrays = mnist
    plain = idx_bytes(arrays["train-images-idx3-ubyte"])
    packed = gzip.compress(plain)
    damaged = (
        plain[:-1],
        plain[:3],
        b"",
        b"\0\0\x0d" + plain[3:],
        packed[:-9],
        packed[:40] + b"\xff" * 9 + packed[49:],
    )
    path = folder / "train-images-idx3-ubyte"
    for content in damaged:
        path.write_bytes(content)
        assert "not an idx file" in refusal(path.parent, named=path)
