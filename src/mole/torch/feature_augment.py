"""Random crops and flips of feature maps: what a developer can do who has no images to crop and flip.

Morphed samples cannot be cropped or flipped. The features that the augmented layer makes of them can, and
that is nearly the same: a shifted image has shifted features, but for the border, and a flipped image has
the flipped features of flipped kernels, which is where the likeness ends.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from mole.errors import ParameterError
from mole.torch.module import augmented_part


class FeatureAugment:
    """A hook for the augmented layer, which crops and flips its features while the model trains.

    >>> features = torch.arange(4.0).reshape(1, 1, 2, 2)
    >>> FeatureAugment(padding=0, flip=False).changed(features).equal(features)
    True

    Attributes:
        padding: positions by which a map is shifted at most, either way along each axis; what is missing
            then at one border is filled with what stands at that border.
        flip: mirror half of the maps, left to right.
    """

    def __init__(self, *, padding: int = 4, flip: bool = True) -> None:
        if padding < 0:
            raise ParameterError(f"padding is {padding}: give 0 or a number above")
        self.padding, self.flip = padding, flip

    def __call__(self, module: nn.Module, inputs: Any, features: Tensor) -> Tensor | None:
        """What PyTorch calls with the layer's output; outside training nothing changes."""
        return self.changed(features) if module.training else None

    def changed(self, features: Tensor) -> Tensor:
        """Feature maps, (b, channels, height, width), each shifted and perhaps flipped by chance."""
        if features.dim() != 4:
            raise ParameterError(
                f"features of shape {tuple(features.shape[1:])} are not maps of an image, and cannot be "
                "cropped or flipped: leave that out"
            )
        rows, columns = (self._places(len(features), side) for side in features.shape[2:])
        if self.flip:
            mirrored = torch.rand(len(features)) < 0.5
            columns = torch.where(mirrored[:, None], columns.flip(1), columns)
        rows, columns = rows.to(features.device), columns.to(features.device)
        batch, channels = (torch.arange(size, device=features.device) for size in features.shape[:2])
        return features[
            batch[:, None, None, None],
            channels[None, :, None, None],
            rows[:, None, :, None],
            columns[:, None, None, :],
        ]

    def _places(self, count: int, side: int) -> Tensor:
        """Where along an axis the positions of each map come from, (count, side)."""
        shift = torch.randint(-self.padding, self.padding + 1, (count, 1))
        return (torch.arange(side) + shift).clamp(0, side - 1)


def augment_features(model: nn.Module, *, padding: int = 4, flip: bool = True) -> RemovableHandle:
    """Let a model crop and flip the features of its augmented layer while it trains.

        handle = augment_features(model)
        train(model, dataset, epochs=10)
        handle.remove()

    Args:
        model: a model with an augmented layer.
        padding: positions by which feature maps are shifted at most.
        flip: whether half of them are mirrored.

    Returns:
        What takes it away again.

    Raises:
        ParameterError: if the model has no augmented layer.
    """
    part = augmented_part(model)
    if part is None:
        raise ParameterError("the model has no augmented layer: attach the one that came with the data")
    return part.module.register_forward_hook(FeatureAugment(padding=padding, flip=flip))
