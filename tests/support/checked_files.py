"""Checked files with tensors that the library itself would not write."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save


def save_unaltered(path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write tensors as they are, numbers without an axis too, with the right checksum."""
    content = save(dict(tensors), {**metadata, "sha256": "0" * 64})
    digest = hashlib.sha256(content).hexdigest()
    path.write_bytes(content.replace(b"0" * 64, digest.encode(), 1))
