"""The paper's three arms: a small network trained on plain data, and on morphed data in two ways.

With the augmented layer it learns as from plain data. Without it, the network gets morphed rows as if they
were images, and learns little.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

import mole
from mole.exchange.delivery import Delivery
from mole.sources.bundled import Arrays
from mole.torch import MorphedDataset, attach, evaluate, train
from mole.torch.batches import samples_of

SHAPE, CLASSES, MEAN, STD = (1, 28, 28), 10, (0.286,), (0.353,)  # of Fashion-MNIST
EPOCHS, BATCH = 5, 64


@dataclass(frozen=True)
class Arm:
    """One way to train: its accuracies on the test set, one per seed, and its seconds."""

    name: str
    accuracies: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return statistics.mean(self.accuracies)

    @property
    def spread(self) -> float:
        """The standard deviation of accuracies."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0


class Way(NamedTuple):
    """What an arm trains on, what it is tested on, and the layer to put into its network, if any."""

    name: str
    data: Dataset[Any]
    test: Dataset[Any]
    layer: mole.AugmentedLayer | None = None


def network() -> nn.Sequential:
    """Two convolutions: enough for clothes of 28x28, and quick on two CPU cores."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, CLASSES),
    )  # fmt: skip


def plain_data(images: Arrays, part: str) -> TensorDataset:
    """A part of Fashion-MNIST as a network expects it: normalised, with labels."""
    plain = mole.Normalisation(MEAN, STD).apply(images[f"x_{part}"][:, np.newaxis])
    return TensorDataset(torch.from_numpy(plain), torch.from_numpy(images[f"y_{part}"].astype(np.int64)))


def train_arms(images: Arrays, delivery: Delivery, seeds: int) -> Iterator[Arm]:
    """Train every arm with as many seeds, one arm after the other."""
    for way in _ways(images, delivery):
        start = time.perf_counter()
        accuracies = tuple(_accuracy(way, seed) for seed in range(seeds))
        yield Arm(way.name, accuracies, time.perf_counter() - start)


def _ways(images: Arrays, delivery: Delivery) -> Iterator[Way]:
    yield Way("plain data", plain_data(images, "private"), plain_data(images, "test"))
    data, test = (MorphedDataset(delivery, split) for split in ("train", "test"))
    yield Way("morphed, augmented layer", data, test, delivery.layer())
    yield Way("morphed, no augmented layer", _as_images(data), _as_images(test))


def _accuracy(way: Way, seed: int) -> float:
    torch.manual_seed(seed)
    model = network()
    if way.layer is not None:
        attach(model, way.layer)
    train(model, way.data, epochs=EPOCHS, batch_size=BATCH, seed=seed)
    return evaluate(model, way.test).accuracy


def _as_images(data: MorphedDataset) -> TensorDataset:
    """Morphed rows as if they were images: what a network without the augmented layer would get."""
    rows = torch.stack([samples_of(data[index]) for index in range(len(data))])
    return TensorDataset(rows, torch.from_numpy(np.asarray(data.labels)))
