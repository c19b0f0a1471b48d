"""The augmented layer as a PyTorch module, and where it stands in a model."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import torch
import torch.fx
from torch import Tensor, nn

from mole.errors import MoleWarning, ShapeError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import Padding
from mole.scheme.shapes import Array
from mole.storage.mapped import own_copy


class AugmentedModule(nn.Module):
    """Takes morphed samples and gives the first layer's features, with its channels shuffled.

    Its weight and bias are buffers, not parameters: they move with `.to()` and are saved in the
    `state_dict`, and no optimizer can change them. Some networks ask their first layer for
    `weight.dtype` or `stride`, so it keeps those names and the hyper-parameters of the layer it replaces.

    A layer in two factors has a buffer `mixing`, too: the weight is then the basis, and what it gives is
    mixed at every output position (`mole.scheme.factored`).

    Its weight is large, and the provider has sent it once already. With `in_state_dict = False` a state
    dict holds an empty tensor in its place, and the fingerprint of the key: it fits every model to which
    the layer of that key is attached, and no other.

    With DistributedDataParallel, wrap the model after this layer is attached, and use
    `broadcast_buffers=False` (`forward_sync_buffers=False` in newer versions of PyTorch), or the weight is
    sent at every step.
    """

    weight: Tensor
    mixing: Tensor | None
    bias: Tensor | None
    key_id: Tensor
    _sides: list[int]
    _padded_sides: list[int]
    _zeros_before: list[int]
    _feature_sides: list[int]
    __jit_unused_properties__: ClassVar[list[str]] = ["key_fingerprint"]  # TorchScript leaves it out

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
            added_padding: zeros that the network puts around the last axes of its input before this layer;
                they are cut off again, because the augmented layer includes them.
            hyper_parameters: attributes of the replaced layer, for networks that look at them.
        """
        super().__init__()
        self.hyper_parameters = dict(hyper_parameters or {})
        for name, value in self.hyper_parameters.items():
            setattr(self, name, value)
        self.input_shape = augmented.input_shape
        self.output_shape = augmented.output_shape
        self.kappa, self.layout = augmented.kappa, augmented.layout  # for checkpoints; not used here
        self.geometry = augmented.geometry  # for the next one that is attached in its place
        self.plain_shape = augmented.plain_shape  # for `layer`, too
        self.normalisation = augmented.normalisation  # for `layer`
        self.in_state_dict = True
        self.added_padding = added_padding
        self._sides, self._feature_sides = list(augmented.input_shape), list(augmented.output_shape)
        self._zeros_before = [before for before, _ in added_padding]
        padded = zip(augmented.input_shape[-len(added_padding) :], added_padding, strict=False)
        self._padded_sides = [side + sum(pair) for side, pair in padded]
        for name in ("weight", "mixing", "bias"):
            numbers = getattr(augmented, name)
            self.register_buffer(name, None if numbers is None else torch.from_numpy(own_copy(numbers)))
        # A buffer as well, so that a checkpoint carries the fingerprint of its key.
        key_id = list(bytes.fromhex(augmented.key_fingerprint))
        self.register_buffer("key_id", torch.tensor(key_id, dtype=torch.uint8, device="cpu"))

    @property
    def key_fingerprint(self) -> str:
        """Which key the layer, and so the data, was made with."""
        return "unknown" if self.key_id.is_meta else bytes(self.key_id.tolist()).hex()

    def forward(self, input: Tensor) -> Tensor:  # named as PyTorch's layers name it
        """Features of morphed samples: (b, *input_shape) or (b, elements) to (b, *output_shape)."""
        rows = _rows(input, self._sides, self._padded_sides, self._zeros_before)
        return _features(rows, self.weight, self.mixing, self.bias, self._feature_sides)

    def layer(self) -> AugmentedLayer:
        """What it was made of: the layer that the provider sent."""
        return AugmentedLayer(
            weight=_numpy(self.weight),
            mixing=None if self.mixing is None else _numpy(self.mixing),
            bias=None if self.bias is None else _numpy(self.bias),
            input_shape=self.input_shape,
            output_shape=self.output_shape,
            kappa=self.kappa,
            layout=self.layout,
            key_fingerprint=self.key_fingerprint,
            normalisation=self.normalisation,
            geometry=self.geometry,
            plain_shape=self.plain_shape,
        )

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if not self.in_state_dict:
            destination[f"{prefix}weight"] = self.weight.new_empty(0)
            destination.pop(f"{prefix}mixing", None)

    def _load_from_state_dict(  # noqa: PLR0917  (PyTorch's own signature)
        self, state_dict: dict[str, Any], prefix: str, metadata: Any, strict: bool,
        missing: list[str], unexpected: list[str], errors: list[str],
    ) -> None:  # fmt: skip
        """As for any module; where the weight was left out, the attached one has to be of its key."""
        weight, key_id = (state_dict.get(prefix + name) for name in ("weight", "key_id"))
        if isinstance(weight, Tensor) and not weight.numel():
            if isinstance(key_id, Tensor) and not _equal(key_id.to(self.key_id.device), self.key_id):
                errors.append(f"'{prefix}weight' was left out, and is of another key than this layer")
            own = {"weight": self.weight, "mixing": self.mixing}
            state_dict = {
                **state_dict,
                **{prefix + name: kept for name, kept in own.items() if kept is not None},
            }
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)

    def apply(self, fn: Callable[[nn.Module], None]) -> Self:
        """As for any module, but whatever the function does, the weight stays the provider's.

        A function that initialises everything with a weight would make the layer useless.
        """
        tensors = {name: tensor for name, tensor in self._buffers.items() if tensor is not None}
        values = {name: tensor.clone() for name, tensor in tensors.items()}
        try:
            fn(self)
        finally:
            if not self._holds(values):
                self._put_back(tensors, values)
                warnings.warn(_KEPT, MoleWarning, stacklevel=2)
        return self

    def _holds(self, values: Mapping[str, Tensor]) -> bool:
        """Whether the buffers have these values, and nothing was added."""
        now = {name: tensor for name, tensor in self._buffers.items() if tensor is not None}
        return now.keys() == values.keys() and all(
            _equal(tensor, values[name]) for name, tensor in now.items()
        )

    def _put_back(self, tensors: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
        for name in ("weight", "mixing", "bias", "key_id"):
            self._parameters.pop(name, None)
            self._buffers[name] = tensors.get(name)
        with torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(values[name])

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.input_shape} -> {self.output_shape}, key {self.key_fingerprint}"


_KEPT = (
    "model.apply would have overwritten the augmented layer's weight, which only the provider can make, so "
    "it stays as it is: initialise a model before the layer is attached"
)

# Two plain functions, which torch.fx keeps as they are and TorchScript compiles: types are TorchScript's.


@torch.fx.wrap
def _rows(morphed: Tensor, sides: list[int], padded_sides: list[int], zeros_before: list[int]) -> Tensor:
    """Row vectors of a batch: (b, elements), without the zeros that the network put around it."""
    axes = len(padded_sides)
    if axes > 0 and morphed.dim() > axes and list(morphed.shape[-axes:]) == padded_sides:
        for axis in range(axes):
            length = sides[len(sides) - axes + axis]
            morphed = morphed.narrow(morphed.dim() - axes + axis, zeros_before[axis], length)
    elements = 1
    for side in sides:
        elements *= side
    # While a model is traced, sides are no numbers: they cannot be compared.
    if torch.jit.is_tracing():  # type: ignore
        return morphed.flatten(1)
    got = list(morphed.shape[1:])
    if got != [elements] and _without_ones(got) != _without_ones(sides):
        if torch.jit.is_scripting():  # type: ignore[attr-defined]
            raise ValueError("a batch does not fit this augmented layer")
        else:
            raise _misfit(morphed, sides)
    return morphed.flatten(1)


@torch.fx.wrap
def _features(
    rows: Tensor, weight: Tensor, mixing: Tensor | None, bias: Tensor | None, sides: list[int]
) -> Tensor:
    """Features of row vectors: (b, elements) to (b, *sides)."""
    features = rows @ weight
    if mixing is not None:
        positions, components = mixing.shape[0], mixing.shape[1]
        by_position = features.reshape(rows.shape[0], positions, components).transpose(0, 1)
        features = torch.bmm(by_position, mixing).permute(1, 2, 0).contiguous()  # (b, channels, positions)
    features = features.reshape([rows.shape[0]] + sides)  # noqa: RUF005  (for TorchScript)
    if bias is None:
        return features
    # Under autocast the product is in half precision: the sum stays so, as a convolution's does.
    per_channel = bias.to(features.dtype).reshape([-1] + [1] * (len(sides) - 1))
    return features + per_channel


def _without_ones(sides: list[int]) -> list[int]:
    """Sides of more than one: an axis that a network adds for its channels changes nothing."""
    longer: list[int] = []
    for side in sides:
        if side != 1:
            longer.append(side)
    return longer


def _misfit(morphed: Tensor, sides: list[int]) -> ShapeError:
    return ShapeError(
        f"a batch of shape {tuple(morphed.shape)} does not fit this augmented layer: "
        f"expected (batch, {', '.join(map(str, sides))})"
    )


def _numpy(tensor: Tensor) -> Array:
    values = tensor.detach().cpu()
    array: Array = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return array


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.is_meta or other.is_meta:
        return one.is_meta and other.is_meta
    return one.device == other.device and torch.equal(one, other)


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
