"""Morphed data in a model without the augmented layer: the mistake that nothing else would show."""

import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from chosen_layout import tiles_chosen
from glyphs import TRAINING, make_key, network
from mole.demo.arms import _as_images
from mole.errors import MoleWarning, ParameterError
from mole.exchange.delivery import Delivery
from mole.provider.deliver import deliver
from mole.torch import MorphedDataset, attach, check_key, evaluate, export_first_layer, train

FORGOTTEN = "the model has no augmented layer.*attach the one that came with the data"
SHORT = {**TRAINING, "epochs": 1}


def said_by(work) -> list[str]:
    """What a piece of work warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    "work",
    [
        lambda model, data: train(model, data, validation=data, **SHORT),
        lambda model, data: evaluate(model, data, batch_size=100),
        check_key,
    ],
)
def test_it_is_said_once_for_each_model(setting, work):
    model = network()
    with pytest.warns(MoleWarning, match=FORGOTTEN) as told:
        work(model, setting.test)
    assert len(told) == 1
    assert work is check_key or told[0].filename == __file__
    assert said_by(lambda: work(model, setting.test)) == []
    with pytest.warns(MoleWarning, match=FORGOTTEN):
        work(network(), setting.test)


def test_nothing_is_said_of_an_attached_layer_or_of_plain_data(setting):
    model = network()
    plain = TensorDataset(torch.randn(8, 1, 12, 12), torch.zeros(8, dtype=torch.int64))
    assert said_by(lambda: evaluate(network(), plain)) == []
    assert said_by(lambda: evaluate(network(), _as_images(setting.test))) == []  # the demo means it
    attach(model, setting.layer)
    assert said_by(lambda: evaluate(model, setting.test)) == []


@pytest.mark.parametrize(
    "made",
    [
        lambda data: Subset(data, [0, 1, 2]),
        lambda data: Subset(ConcatDataset([data, data]), [0, 1]),
        lambda data: torch.utils.data.random_split(data, [0.5, 0.5])[0],
    ],
)
def test_parts_and_sums_of_data_sets_are_looked_into(setting, tmp_path, made):
    with pytest.warns(MoleWarning, match=FORGOTTEN):
        evaluate(network(), made(setting.test))
    np.savez(tmp_path / "d.npz", **setting.arrays)
    first = export_first_layer(network(), (1, 12, 12), mean=[0.5], std=[0.25])
    deliver(tmp_path / "d.npz", first, make_key(1), tmp_path / "other", rows_per_shard=500)
    model = network()
    attach(model, Delivery.open(tmp_path / "other").layer())
    with pytest.raises(ParameterError, match="the data was morphed with key"):
        evaluate(model, made(setting.test))
    assert said_by(lambda: evaluate(model, made(MorphedDataset(tmp_path / "other", "test")))) == []


def test_what_print_shows_is_short(setting):
    shown = [repr(one) for one in (setting.layer, setting.test, setting.test.delivery)]
    key = make_key().fingerprint
    layer, data, delivery = shown
    size = "147.5 kB" if tiles_chosen() else "829.4 kB"
    assert layer == f"AugmentedLayer(1x12x12 -> 16x12x12, float32, {size}, key {key})"
    assert data == f"MorphedDataset({setting.folder!r}, 'test', 200 rows of 1x12x12, key {key})"
    assert delivery == (
        f"Delivery({setting.folder!r}, 200 test + 400 train rows of 1x12x12 as float32, key {key})"
    )
