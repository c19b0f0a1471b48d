"""Small signs in noise, and a network that learns to tell them apart within a few epochs."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import mole
from chosen_layout import cut
from mole.torch import CheckpointFacts, MorphedDataset
from mole.torch.networks import build_network

SHAPE, CLASSES = (1, 12, 12), ("rows", "columns", "chequers", "cross")
GLYPHS = np.array([
    [[1, 1, 1], [-1, -1, -1], [1, 1, 1]],
    [[1, -1, 1], [1, -1, 1], [1, -1, 1]],
    [[1, -1, 1], [-1, 1, -1], [1, -1, 1]],
    [[-1, 1, -1], [1, 1, 1], [-1, 1, -1]],
])  # fmt: skip
TRAINING = {"epochs": 6, "learning_rate": 5e-3, "batch_size": 32, "seed": 7}
FACTS = CheckpointFacts("small_vgg", SHAPE, 4, CLASSES)


class Setting(NamedTuple):
    """A delivery of signs: its folder, the arrays it was made from, its splits and its layer."""

    folder: str
    arrays: dict[str, np.ndarray]
    train: MorphedDataset
    test: MorphedDataset
    layer: mole.AugmentedLayer


def glyphs(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A small sign somewhere in the noise, light or dark: easy to see where neighbours are neighbours."""
    labels = rng.integers(0, 4, count)
    images = rng.normal(128, 20, (count, *SHAPE))
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(0, 10, 2)
        image[0, top : top + 3, left : left + 3] = 128 + 90 * GLYPHS[label] * rng.choice([-1, 1])
    return np.clip(images, 0, 255).astype(np.uint8), labels


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return build_network("small_vgg", SHAPE, len(CLASSES))


def make_key(seed: int = 0) -> mole.MorphKey:
    return mole.MorphKey.generate(SHAPE, insecure_seed=bytes([seed] * 32), **cut())
