"""Layers on samples that tiles do not fill, and deliveries of such samples."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

import mole
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.torch import export_first_layer

CASES = {
    "28x28 in tiles of 8": (lambda: nn.Conv2d(1, 4, 3, padding=1), (1, 28, 28), 8),
    "a stem of stride 2": (lambda: nn.Conv2d(3, 8, 7, stride=2, padding=3), (3, 45, 41), 8),
    "patches of which some are cut off": (lambda: nn.Conv2d(3, 4, 4, stride=4), (3, 30, 30), 8),
    "a volume": (lambda: nn.Conv3d(1, 4, 3, padding=1), (1, 9, 10, 11), 4),
    "sound": (lambda: nn.Conv1d(2, 4, 9, stride=4, padding=4), (2, 101), 16),
}
WHOLE = {
    "28x28 in tiles of 8": (1, 32, 32),
    "a stem of stride 2": (3, 48, 48),
    "patches of which some are cut off": (3, 32, 32),
    "a volume": (1, 12, 12, 12),
    "sound": (2, 112),
}


def model_of(name: str) -> nn.Sequential:
    """A network of one layer, the same each time."""
    torch.manual_seed(3)
    return nn.Sequential(CASES[name][0]())


def key_of(name: str, seed: int = 0) -> mole.MorphKey:
    _, shape, tile = CASES[name]
    return mole.MorphKey.generate(shape, tile=tile, insecure_seed=bytes([seed] * 32))


def delivered(
    name: str, folder: Path, *, count: int = 20, **options: object
) -> tuple[Delivery, np.ndarray, mole.FirstLayer]:
    """A delivery of noise in 8 bits, the samples it was made from, and the layer it was made for."""
    shape = CASES[name][1]
    samples = np.random.default_rng(5).integers(0, 256, (count, *shape), dtype=np.uint8)
    np.savez(folder / "data.npz", x_train=samples, y_train=np.arange(count) % 3)
    layer = export_first_layer(model_of(name), shape, mean=[0.4] * shape[0], std=[0.2] * shape[0])
    made = deliver(str(folder / "data.npz"), layer, key_of(name), folder / "d", rows_per_shard=8, **options)
    return made.delivery, samples, layer
