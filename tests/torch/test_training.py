"""Training on morphed data teaches what plain data teaches, and the same seed gives the same network."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from glyphs import SHAPE, TRAINING, make_key, network
from mole.errors import MoleError, MoleWarning, ParameterError
from mole.provider.row_numbers import RowNumbers
from mole.torch import (
    attach,
    evaluate,
    train,
)


class PlainTwin(Dataset):
    """The plain rows of a delivery, in the same order and shuffled alike."""

    def __init__(self, morphed, images, labels):
        delivery_id = morphed.delivery.manifest.delivery_id
        order = RowNumbers(make_key(), delivery_id, morphed.split, len(labels)).order
        plain = (images[order].astype(np.float32) / 255 - 0.5) / 0.25
        self.rows, self.sampler = (
            TensorDataset(torch.tensor(plain), torch.tensor(labels[order])),
            morphed.sampler,
        )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def test_morphed_data_teaches_what_plain_data_teaches(setting, trained):
    model = network()
    order = make_key().channel_order(model[0].out_channels)
    with torch.no_grad():  # the channels in the order of the augmented layer, and frozen like it
        model[0].weight.copy_(model[0].weight[order.copy()])
        model[0].bias.copy_(model[0].bias[order.copy()])
    model[0].requires_grad_(False)
    rows = [
        PlainTwin(morphed, setting.arrays[f"x_{morphed.split}"], setting.arrays[f"y_{morphed.split}"])
        for morphed in (setting.train, setting.test)
    ]
    history = train(model, rows[0], validation=rows[1], **TRAINING)
    plain, morphed = history[-1].validation.accuracy, trained[1][-1].validation.accuracy
    assert plain > 0.95
    assert morphed > 0.95
    assert abs(plain - morphed) < 0.02
    assert history[0].loss == pytest.approx(trained[1][0].loss, rel=1e-2)  # rounding apart, the same


def test_without_the_augmented_layer_it_does_not(setting):
    model = network()
    with pytest.warns(MoleWarning, match="has no augmented layer"):
        history = train(model, setting.train, validation=setting.test, **TRAINING)
    assert history[-1].validation.accuracy < 0.7


def test_the_history_and_what_is_reported(setting, trained):
    model, history = trained
    assert [epoch.number for epoch in history] == list(range(1, TRAINING["epochs"] + 1))
    assert history[-1].loss < history[0].loss
    assert history[-1].accuracy > history[0].accuracy
    assert evaluate(model, setting.test) == history[-1].validation
    steps, epochs = [], []
    fresh = network()
    attach(fresh, setting.layer)
    short = {**TRAINING, "epochs": 2, "batch_size": 200}
    result = train(
        fresh, setting.train, progress=lambda *now: steps.append(now), on_epoch=epochs.append, **short
    )
    assert steps == [(done, 4) for done in range(1, 5)]
    assert tuple(epochs) == result
    assert result[0].validation is None


@pytest.mark.parametrize("workers", [0, 2])
def test_the_same_seed_gives_the_same_network(setting, workers):
    def once(seed):
        model = network()
        attach(model, setting.layer)
        state = torch.random.get_rng_state()
        short = {**TRAINING, "epochs": 1, "seed": seed, "workers": workers}
        history = train(model, setting.train, validation=setting.test, **short)
        assert torch.equal(torch.random.get_rng_state(), state)  # nobody else's random numbers change
        return history, model.state_dict()

    (one, weights), (same, same_weights), (other, _) = once(1), once(1), once(2)
    assert one == same
    assert all(torch.equal(weights[name], same_weights[name]) for name in weights)
    assert other != one


def test_wrong_choices_are_named():
    model, tensors = network(), TensorDataset(torch.randn(4, *SHAPE), torch.tensor([0, 1, 4, 2]))
    for name in ("epochs", "batch_size", "learning_rate"):
        with pytest.raises(ParameterError, match=f"{name} is 0"):
            train(model, tensors, **{**TRAINING, name: 0})
    with pytest.raises(ParameterError, match=r"classes 0 to 3 and the data has labels from 0 to 4"):
        train(model, tensors, **TRAINING)
    with pytest.raises(ParameterError, match="device 'toaster' cannot be used here"):
        train(model, tensors, device="toaster", **TRAINING)
    with pytest.raises(ParameterError, match="the data set has no rows"):
        evaluate(model, TensorDataset(torch.randn(0, *SHAPE), torch.zeros(0, dtype=torch.int64)))
    with pytest.raises(ParameterError, match="all its parameters are frozen"):
        train(network().requires_grad_(False), tensors, epochs=1)
    with pytest.raises(MoleError, match="one row of class scores"):
        evaluate(nn.Sequential(nn.Conv2d(1, 4, 3)), tensors)
    broken = TensorDataset(torch.full((4, *SHAPE), torch.nan), torch.tensor([0, 1, 3, 2]))
    with pytest.raises(ParameterError, match="try a smaller learning rate"):
        train(model, broken, epochs=1)
