"""How weights follow gradients: AdamW and one cycle of the learning rate, or SGD with a rate in steps."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from torch import nn
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, StepLR

from mole.errors import ParameterError


@dataclass(frozen=True)
class StepDecay:
    """SGD with momentum; every so many epochs the learning rate is multiplied by a factor.

    As in the paper: `StepDecay(every=60, factor=0.5)`.

    Attributes:
        every: epochs between two steps.
        factor: what the learning rate is multiplied by.
        momentum: how much of the last step goes into the next.
    """

    every: int
    factor: float = 0.5
    momentum: float = 0.9


class LearningRule(NamedTuple):
    """An optimizer and the schedule of its learning rate, which moves on with every batch."""

    optimizer: Optimizer
    schedule: LRScheduler

    @classmethod
    def of(
        cls,
        model: nn.Module,
        *,
        learning_rate: float,
        weight_decay: float,
        decay: StepDecay | None,
        batches: int,
        epochs: int,
    ) -> Self:
        """The rule for a model and so many batches in each of so many epochs.

        Raises:
            ParameterError: if all of the model is frozen.
        """
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not parameters:
            raise ParameterError("the model has nothing to train: all its parameters are frozen")
        if decay is not None:
            steps = SGD(parameters, lr=learning_rate, momentum=decay.momentum, weight_decay=weight_decay)
            return cls(steps, StepLR(steps, step_size=decay.every * batches, gamma=decay.factor))
        cycle = AdamW(parameters, lr=learning_rate, weight_decay=weight_decay)
        total = max(2, epochs * batches)
        return cls(cycle, OneCycleLR(cycle, max_lr=learning_rate, total_steps=total))
