"""A delivery of small signs, and a network that was trained on it."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from glyphs import CLASSES, SHAPE, TRAINING, Setting, glyphs, make_key, network
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.sources.opening import open_source
from mole.storage.stores import open_store
from mole.torch import Epoch, MorphedDataset, attach, export_first_layer, train


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small lose more than they gain by two, above all on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def setting(tmp_path_factory) -> Setting:
    folder = tmp_path_factory.mktemp("training")
    arrays = {}
    for split, count in (("train", 400), ("test", 200)):
        arrays[f"x_{split}"], arrays[f"y_{split}"] = glyphs(np.random.default_rng(count), count)
    np.savez(folder / "data.npz", **arrays, classes=CLASSES)
    first = export_first_layer(network(), SHAPE, mean=[0.5], std=[0.25])
    store = open_store(str(folder / "delivery"))
    deliver(open_source(str(folder / "data.npz")), first, make_key(), store, rows_per_shard=100)
    delivery = Delivery.open(folder / "delivery")
    parts = [MorphedDataset(delivery, split) for split in ("train", "test")]
    return Setting(str(folder / "delivery"), arrays, *parts, delivery.layer())


@pytest.fixture(scope="session")
def trained(setting) -> tuple[nn.Module, tuple[Epoch, ...]]:
    """A network that was trained on morphed data, and how that went."""
    model = network()
    attach(model, setting.layer)
    return model, train(model, setting.train, validation=setting.test, **TRAINING)
