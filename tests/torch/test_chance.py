"""What a model does to its input by chance is always seen, and nobody else's random numbers change."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from mole.torch import find_first_layer
from small_models import Net, conv, reasons


def by_chance(draw, p):
    return lambda n, x: n.a(x.flip(-1) if n.training and draw() < p else x)


@pytest.mark.parametrize(
    ("forward", "seeds"),
    [
        (by_chance(lambda: torch.rand(1), 0.5), 10),
        (by_chance(lambda: torch.rand(()).item(), 0.001), 4),
        (by_chance(lambda: 1 - torch.empty(1).uniform_(0.0, 1.0), 0.001), 2),
        (by_chance(lambda: torch.randint(0, 1000, (1,)), 1), 2),
        (by_chance(lambda: torch.distributions.Bernoulli(0.999).sample(), 0.5), 2),
        (by_chance(random.random, 0.2), 4),
        (by_chance(np.random.rand, 0.2), 4),
        (lambda n, x: n.a(x.flip(-1) if torch.rand(1) < 0.01 else x), 2),
        (lambda n, x: n.a(x) + (x.mean() if n.training and torch.rand(1) < 0.01 else 0), 2),
    ],
)
def test_what_happens_to_the_input_by_chance_is_always_seen(forward, seeds):
    model = Net(forward, a=conv())
    for seed in range(seeds):
        torch.manual_seed(seed)
        random.seed(seed)
        states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
        assert "the input goes through" in reasons(model)
        assert torch.equal(torch.get_rng_state(), states[0])
        assert (random.getstate(), np.random.get_state()[1].tolist()) == states[1:]  # noqa: NPY002


def test_chance_that_leaves_the_input_alone_is_no_reason():
    def forward(net, x):
        flipped = torch.rand(1) < 0.0 or torch.bernoulli(torch.zeros(1)) > 0
        while torch.rand(1) > 0.5:  # ends, however large the first numbers are
            pass
        return net.a(x.flip(-1) if flipped else x) + torch.rand(1)

    assert find_first_layer(Net(forward, a=conv()), (3, 8, 8)).name == "a"
    assert find_first_layer(nn.Sequential(conv(), nn.Dropout(0.5)), (3, 8, 8)).name == "0"
