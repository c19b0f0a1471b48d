"""Checked files: the same content gives the same bytes, and every safetensors reader opens them."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from mole.storage.checked import load_checked, save_checked

TENSORS = {"weight": np.arange(6, dtype=np.float16).reshape(2, 3), "bias": np.array([1.5, -2.0])}
METADATA = {name: f'"{name}" ä\x01\x7f\u2028/\\' for name in ("zoo", "kind", "version", "Alpha", "format")}


def header_of(content: bytes) -> bytes:
    return content[8 : 8 + int.from_bytes(content[:8], "little")]


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for number in range(8):  # safetensors alone orders five entries in 120 ways
        backwards = dict(reversed(METADATA.items())) if number % 2 else METADATA
        save_checked(tmp_path / str(number), TENSORS, backwards)
    assert len({(tmp_path / str(number)).read_bytes() for number in range(8)}) == 1


def test_the_header_is_sorted_and_any_reader_opens_it(tmp_path):
    path = tmp_path / "layer"
    save_checked(path, TENSORS, METADATA)
    header = header_of(path.read_bytes())
    assert len(header) % 8 == 0
    assert list(json.loads(header)["__metadata__"]) == sorted({*METADATA, "sha256"})
    with safe_open(path, "numpy") as opened:
        assert opened.metadata().items() >= METADATA.items()
    for name, tensor in load_file(path).items():
        assert tensor.dtype == TENSORS[name].dtype
        assert np.array_equal(tensor, TENSORS[name])
    assert load_checked(path)[1] == METADATA


@pytest.mark.parametrize("count", [0, 1, 300])
def test_headers_of_any_length(tmp_path, count):
    metadata = {f"name {number}": "x" * number for number in range(count)}
    tensors = {f"layer.{number}": np.full(number % 3, number) for number in range(count + 1)}
    save_checked(tmp_path / "file", tensors, metadata)
    loaded, found = load_checked(tmp_path / "file")
    assert found == metadata
    assert all(np.array_equal(loaded[name], tensor) for name, tensor in tensors.items())


def test_only_the_order_of_the_header_is_ours(tmp_path):
    save_checked(tmp_path / "ours", TENSORS, METADATA)
    ours = (tmp_path / "ours").read_bytes()
    save_file(TENSORS, tmp_path / "theirs", metadata={**METADATA, "sha256": "0" * 64})
    theirs = (tmp_path / "theirs").read_bytes()
    assert len(ours) == len(theirs)
    assert ours[8 + len(header_of(ours)) :] == theirs[8 + len(header_of(theirs)) :]
