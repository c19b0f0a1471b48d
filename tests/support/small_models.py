"""Models of a layer or two whose forward a test fills in, and what becomes of them."""

import numpy as np
import pytest
import torch
from torch import nn

import mole
from chosen_layout import cut
from mole.errors import UnsupportedLayerError
from mole.torch import MorphedDataset, attach, export_first_layer


class Net(nn.Module):
    """Two layers under names that say nothing about their order, and a forward to be filled in."""

    def __init__(self, forward, **modules: nn.Module) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)
        self._run = forward

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self._run(self, batch)


def conv(inputs: int = 3, outputs: int = 4, **options) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, **options)


def reasons(model: nn.Module, shape=(3, 8, 8)) -> str:
    with pytest.raises(UnsupportedLayerError) as caught:
        export_first_layer(model, shape)
    return " | ".join(caught.value.reasons)


def agree(model: nn.Module, shape: tuple[int, ...]) -> bool:
    """Whether an attached model gives the plain one's answers, its channels shuffled."""
    model.eval()
    layer, key = export_first_layer(model, shape), mole.MorphKey.generate(shape, **cut())
    samples = np.random.default_rng(0).normal(size=(2, *shape)).astype(np.float32)
    with torch.no_grad():
        truth = model(torch.from_numpy(samples))[:, key.channel_order(layer.channels)]
        attach(model, mole.augment(layer, key))
        return torch.allclose(model(torch.from_numpy(mole.morph(samples, key))), truth, atol=1e-4)


def by_torch(folder, split="train") -> np.ndarray:
    """The samples of a delivery, as the data set gives them."""
    return torch.stack([sample for sample, _ in MorphedDataset(folder, split)]).numpy()
