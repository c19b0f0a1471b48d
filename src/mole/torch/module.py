"""The augmented layer as a PyTorch module."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mole.errors import ShapeError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import Padding


class AugmentedModule(nn.Module):
    """Takes morphed samples and gives the first layer's features, in shuffled channels.

    Its weight and bias are buffers, not parameters: they move with `.to()` and are saved in the
    `state_dict`, and no optimizer can change them. Some networks ask their first layer for
    `weight.dtype` or `stride`, so it keeps those names and the hyper-parameters of the layer it replaces.

    Under DistributedDataParallel say `broadcast_buffers=False`, or the weight travels at every step.
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
                off again, because the augmented layer contains them.
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
        # A buffer as well, so that a checkpoint brings the name of its key along.
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
        # Under autocast the product comes in half precision: the sum stays in it, as a convolution's does.
        per_channel = self.bias.to(features.dtype).reshape(-1, *(1,) * (len(self.output_shape) - 1))
        return features + per_channel

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.input_shape} -> {self.output_shape}, key {self.key_fingerprint}"
