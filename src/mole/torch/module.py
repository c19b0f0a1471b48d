"""The augmented layer as a PyTorch module, and where it stands in a model."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from mole.errors import ParameterError, ShapeError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import Padding


class AugmentedModule(nn.Module):
    """Takes morphed samples and gives the first layer's features, with its channels shuffled.

    Its weight and bias are buffers, not parameters: they move with `.to()` and are saved in the
    `state_dict`, and no optimizer can change them. Some networks ask their first layer for
    `weight.dtype` or `stride`, so it keeps those names and the hyper-parameters of the layer it replaces.

    With DistributedDataParallel use `broadcast_buffers=False`, or the weight is sent at every step.
    """

    weight: Tensor
    bias: Tensor | None
    key_id: Tensor

    def __init__(
        self,
        augmented: AugmentedLayer,
        *,
        added_padding: Padding = (),
        hyper_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the module.

        Args:
            augmented: the layer that the provider sent.
            added_padding: zeros that the network puts around its input before this layer; they are cut
                off again, because the augmented layer includes them.
            hyper_parameters: attributes of the replaced layer, for networks that look at them.
        """
        super().__init__()
        self.hyper_parameters = dict(hyper_parameters or {})
        for name, value in self.hyper_parameters.items():
            setattr(self, name, value)
        self.input_shape = augmented.input_shape
        self.output_shape = augmented.output_shape
        self.kappa, self.layout = augmented.kappa, augmented.layout  # for checkpoints; not used here
        self.added_padding = added_padding
        grid = zip(augmented.input_shape[1:], added_padding, strict=False)
        self._padded_shape = (augmented.input_shape[0], *(side + sum(pair) for side, pair in grid))
        self.register_buffer("weight", torch.tensor(augmented.matrix))
        self.register_buffer("bias", None if augmented.bias is None else torch.tensor(augmented.bias))
        # A buffer as well, so that a checkpoint carries the fingerprint of its key.
        key_id = list(bytes.fromhex(augmented.key_fingerprint))
        self.register_buffer("key_id", torch.tensor(key_id, dtype=torch.uint8))

    @property
    def key_fingerprint(self) -> str:
        """Which key the layer, and so the data, was made with."""
        return "unknown" if self.key_id.is_meta else bytes(self.key_id.tolist()).hex()

    def forward(self, morphed: Tensor) -> Tensor:
        """Features of morphed samples: (b, *input_shape) or (b, elements) to (b, *output_shape)."""
        if self.added_padding and morphed.shape[1:] == self._padded_shape:
            for axis, (before, after) in enumerate(self.added_padding, start=2):
                morphed = morphed.narrow(axis, before, morphed.shape[axis] - before - after)
        if morphed.shape[1:] not in (self.input_shape, (self.weight.shape[0],)):
            raise ShapeError(
                f"a batch of shape {tuple(morphed.shape)} does not fit this augmented layer: "
                f"expected (batch, {', '.join(map(str, self.input_shape))})"
            )
        product = morphed.flatten(1) @ self.weight
        features = product.reshape(morphed.shape[0], *self.output_shape)
        if self.bias is None:
            return features
        # Under autocast the product is in half precision: the sum stays so, as a convolution's does.
        per_channel = self.bias.to(features.dtype).reshape(-1, *(1,) * (len(self.output_shape) - 1))
        return features + per_channel

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.input_shape} -> {self.output_shape}, key {self.key_fingerprint}"


class AugmentedPart(NamedTuple):
    """The augmented layer of a model, and its name there."""

    name: str
    module: AugmentedModule


def augmented_part(model: nn.Module) -> AugmentedPart | None:
    """The augmented layer of a model; None if none is attached."""
    parts = (
        AugmentedPart(name, module)
        for name, module in model.named_modules()
        if isinstance(module, AugmentedModule)
    )
    return next(parts, None)


def check_key(model: nn.Module, dataset: Dataset[Any]) -> None:
    """Refuse data that was morphed with another key than the model's augmented layer was made with."""
    part, data_key = augmented_part(model), getattr(dataset, "key_fingerprint", None)
    if part is not None and data_key is not None and part.module.key_fingerprint != data_key:
        raise ParameterError(
            f"the data was morphed with key {data_key} and the model's augmented layer was made with "
            f"{part.module.key_fingerprint}: attach the augmented layer that came with this data"
        )
