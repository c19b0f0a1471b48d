"""SGD whose learning rate falls in steps, against the rule written out by hand."""

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from mole.errors import ParameterError
from mole.torch import ResumeFile, train
from mole.torch.learning_rules import LearningRule, StepDecay

EPOCHS, BATCHES = 6, 3


@pytest.fixture
def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(4 * BATCHES, 5, generator=generator)
    return TensorDataset(rows, (rows[:, 0] > 0).long())


def model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))


def learnt(data, **options) -> list[torch.Tensor]:
    network = model()
    train(network, data, epochs=EPOCHS, batch_size=4, learning_rate=0.1, **options)
    return [parameter.detach() for parameter in network.parameters()]


def rates(decay: StepDecay | None) -> list[float]:
    network = model()
    rule = LearningRule.of(
        network, learning_rate=0.1, weight_decay=0, decay=decay, batches=BATCHES, epochs=EPOCHS
    )
    found = []
    for _ in range(EPOCHS * BATCHES):
        found.append(rule.optimizer.param_groups[0]["lr"])
        rule.optimizer.step()
        rule.schedule.step()
    return found


def test_the_rate_falls_in_steps_of_epochs():
    assert rates(StepDecay(every=2)) == pytest.approx([0.1] * 6 + [0.05] * 6 + [0.025] * 6)
    assert rates(StepDecay(every=60)) == pytest.approx([0.1] * 18)
    assert max(rates(None)) == pytest.approx(0.1, rel=0.01)
    assert rates(None)[0] < 0.01  # one cycle begins low


def test_weights_follow_momentum_as_written_out_by_hand(data):
    network = model()
    velocity = [torch.zeros_like(one) for one in network.parameters()]
    order = torch.utils.data.DataLoader(
        data, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for epoch in range(EPOCHS):
            rate = 0.1 * 0.5 ** (epoch // 2)
            for rows, labels in order:
                loss = nn.functional.cross_entropy(network(rows), labels)
                gradients = torch.autograd.grad(loss, list(network.parameters()))
                with torch.no_grad():
                    for one, gradient, speed in zip(network.parameters(), gradients, velocity, strict=True):
                        speed.mul_(0.9).add_(gradient)
                        one.sub_(rate * speed)
    for ours, theirs in zip(learnt(data, decay=StepDecay(every=2)), network.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert not torch.allclose(learnt(data)[0], next(network.parameters()), atol=1e-3)  # AdamW


def test_it_resumes_where_it_was_interrupted(data, tmp_path):
    whole = learnt(data, decay=StepDecay(every=2))
    kept = ResumeFile(tmp_path / "unfinished", {"seed": 0})

    def stop(epoch):
        if epoch.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learnt(data, decay=StepDecay(every=2), resume_file=kept, on_epoch=stop)
    resumed = learnt(data, decay=StepDecay(every=2), resume_file=kept)
    assert all(torch.equal(*pair) for pair in zip(whole, resumed, strict=True))


def test_a_frozen_model_has_nothing_to_train(data):
    frozen = model().requires_grad_(requires_grad=False)
    with pytest.raises(ParameterError, match="all its parameters are frozen"):
        train(frozen, data, epochs=1, decay=StepDecay(every=2))
