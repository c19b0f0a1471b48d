"""Mixup: a network learns from weighted means of two samples each, and from both their labels.

On morphed data it is exact. Morphing is linear and the weights add up to one, so the mean of two morphed
samples is the morphed mean, and its features are the mean of their features, the bias included.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mole.errors import ParameterError
from mole.torch.evaluation import loss_of


class Mixed(NamedTuple):
    """A batch in which each sample is mixed with another one of the batch.

    Attributes:
        samples: the weighted means.
        labels: the classes of the samples themselves.
        partners: the classes of those that were mixed in.
        share: the weight of the samples themselves, from 0 to 1.
    """

    samples: Tensor
    labels: Tensor
    partners: Tensor
    share: float

    def loss(self, logits: Tensor) -> Tensor:
        """The mean loss against both labels, each by its weight."""
        return self.share * loss_of(logits, self.labels) + (1 - self.share) * loss_of(logits, self.partners)

    @property
    def main(self) -> Tensor:
        """The classes that have the larger weight."""
        return self.labels if self.share >= 0.5 else self.partners


def mixup(samples: Tensor, labels: Tensor, alpha: float = 0.2) -> Mixed:
    """Mix each sample of a batch with another one, with a weight drawn from Beta(alpha, alpha).

        mixed = mixup(samples, labels)
        mixed.loss(model(mixed.samples)).backward()

    Args:
        samples: a batch: morphed samples, or features of the augmented layer.
        labels: their classes.
        alpha: how strongly to mix: 0.2 changes most samples little, 1 draws every weight alike.

    Raises:
        ParameterError: if alpha is not above 0.
    """
    if not alpha > 0:
        raise ParameterError(f"alpha is {alpha}: give a number above 0")
    share = float(torch.distributions.Beta(alpha, alpha).sample())
    order = torch.randperm(len(samples)).to(samples.device)
    return Mixed(torch.lerp(samples[order], samples, share), labels, labels[order.to(labels.device)], share)
