"""Networks that do something unusual near their input: attached, equal in features, trained a step."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import mole
from architectures import ARCHITECTURES
from mole.torch import attach, export_first_layer, find_first_layer
from networks import logits


class Case:
    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        make, self.shape, kappa = ARCHITECTURES[name]
        self.original = make()
        self.model = copy.deepcopy(self.original)
        self.layer = export_first_layer(self.model, self.shape)
        self.place = find_first_layer(self.model, self.shape).name
        self.key, self.other_key = (
            mole.MorphKey.generate(self.shape, kappa=kappa, insecure_seed=bytes([seed]) * 32)
            for seed in (1, 2)
        )
        attach(self.model, mole.augment(self.layer, self.key))
        samples = np.random.default_rng(0).normal(size=(4, *self.shape)).astype(np.float32)
        self.plain, self.morphed = (
            torch.from_numpy(samples),
            torch.from_numpy(mole.morph(samples, self.key)),
        )

    def truth(self) -> torch.Tensor:
        order = torch.from_numpy(self.key.channel_order(self.layer.channels))
        return self.features(self.original, self.plain)[:, order]

    def features(self, model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        """What the first layer gives while the whole model runs, before anything overwrites it."""
        seen: list[torch.Tensor] = []
        model = copy.deepcopy(model).eval()
        model.get_submodule(self.place).register_forward_hook(lambda _m, _i, out: seen.append(out.clone()))
        with torch.no_grad():
            model(batch)
        return seen[0]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def case(request) -> Case:
    return Case(request.param)


def test_features_are_the_originals_up_to_the_shuffle(case):
    truth = case.truth()
    assert (case.features(case.model, case.morphed) - truth).norm() <= 1e-5 * truth.norm()


def test_another_keys_layer_gives_other_features(case):
    model, truth = copy.deepcopy(case.original), case.truth()
    attach(model, mole.augment(case.layer, case.other_key))
    wrong = case.features(model, case.morphed)
    assert wrong.shape == truth.shape
    assert (wrong - truth).norm() > 0.3 * truth.norm()


def test_a_training_step_changes_the_network_but_not_its_first_layer(case):
    model = copy.deepcopy(case.model).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):  # dropout and layer drop leave out a part of it in either step
        optimizer.zero_grad()
        logits(model(case.morphed)).square().sum().backward()
        optimizer.step()
    after = model.state_dict()
    frozen = {name for name in after if name.startswith(f"{case.place}.")}
    assert frozen
    assert all(torch.equal(after[name], before[name]) for name in frozen)
    learning = [name for name, _ in model.named_parameters()]
    changed = [name for name in learning if not torch.equal(after[name], before[name])]
    assert not frozen & set(learning)
    assert len(changed) >= 0.8 * len(learning)
    assert all(torch.isfinite(after[name]).all() for name in learning)
