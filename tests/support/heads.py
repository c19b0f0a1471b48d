"""Images whose classes a small front can tell apart, a protected delivery of them, and a head from it."""

from pathlib import Path

import numpy as np
import onnx
import torch

import mole
from deliveries import SHAPE
from fronts import FEATURES, feature_key, front_model
from mole.provider.deliver import deliver
from mole.provider.protect import Protect
from mole.scheme.normalisation import Normalisation
from mole.torch.networks import linear_head

SHARES = np.array([0.75, 0.25])
PATTERNS = np.random.default_rng(5).normal(size=(8, np.prod(SHAPE)))


def write_classes(path: Path, *, train: int = 800, test: int = 200, shares=SHARES, seed: int = 0) -> Path:
    """8-bit images with a faint pattern of their class, and others that say nothing, as an .npz file."""
    rng, arrays = np.random.default_rng(seed), {}
    for split, count in (("train", train), ("test", test)):
        labels = rng.choice(len(shares), count, p=shares)
        values = 18 * PATTERNS[labels] + 30 * rng.normal(size=(count, 3)) @ PATTERNS[5:]
        values = 128 + values + 40 * rng.normal(size=values.shape)
        pixels = values.clip(0, 255).astype(np.uint8).reshape(count, *SHAPE)
        arrays |= {f"x_{split}": pixels.transpose(0, 2, 3, 1), f"y_{split}": labels}
    np.savez(path, **arrays)
    return path


def write_telling_front(path: Path) -> Path:
    """A front whose features are the patterns, and noise."""
    rest = np.random.default_rng(6).normal(size=(FEATURES - len(PATTERNS), PATTERNS.shape[1]))
    weight = np.concatenate([PATTERNS, rest]).T / 400
    onnx.save(
        front_model(weight.astype(np.float32), normalisation=Normalisation((0.5,) * 3, (0.3,) * 3)), path
    )
    return path


def turning_layer(seed: int = 0) -> mole.FirstLayer:
    """The first layer of a linear head."""
    torch.manual_seed(seed)
    return mole.torch.export_first_layer(linear_head((FEATURES,), 2), input_shape=(FEATURES,))


def protected(folder: Path, data: Path, *, bits: float = 16.0, layer=None, seed: int = 0, **options):
    """A protected delivery of such images; with 16 bits of each a head tells nearly all of them apart."""
    return deliver(
        data, layer or turning_layer(), feature_key(seed=seed), folder,
        protect=Protect(data.with_name("front.onnx"), bits=bits), **options,
    ).delivery  # fmt: skip
