"""Put an augmented layer in place of a model's first layer."""

from typing import Any

from torch import nn

from mole.errors import MoleError, ParameterError, UnsupportedLayerError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.shapes import Shape, shape_text
from mole.scheme.tile_kernel import TileKernel
from mole.torch.export import describe
from mole.torch.find import FoundLayer, find_first_layer, layer_in_use
from mole.torch.module import AugmentedModule, augmented_part
from mole.torch.running import unwrapped
from mole.torch.tiles_module import TilesModule

DISTRIBUTED = {"DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine"}


def attach(model: nn.Module, augmented: AugmentedLayer, *, in_state_dict: bool = True) -> AugmentedModule:
    """Replace the model's first layer, in place; from then on the model takes morphed data.

        attach(model, mole.load("augmented-layer.safetensors"))

    Nothing else in the model changes. The new layer is frozen, and stands where the old one stood: on the
    same device, under the same name in the `state_dict`. An augmented layer that is already there is
    replaced. Hooks on the old layer go with it.

    Args:
        model: any model; it is run once to see which layer comes first.
        augmented: the layer that the provider sent.
        in_state_dict: whether the layer's weight is part of `model.state_dict()`, and so of whatever saves
            that. Without it checkpoints are small, and load wherever the same layer is attached.

    Returns:
        The module that now stands in the model.

    Raises:
        UnsupportedLayerError: with every reason why it does not fit; the model is then unchanged.
    """
    if not isinstance(augmented, AugmentedLayer):
        raise ParameterError(f"a {type(augmented).__name__} cannot be attached: give an augmented layer")
    _refuse_distributed(model)
    found = find_first_layer(model, _shape_now(model, augmented))
    if isinstance(found.module, AugmentedModule):
        geometry = found.module.geometry
    else:
        geometry = LayerGeometry.of(describe(found))  # refuses what none could stand in for
    reasons = _mismatches(found, geometry, augmented)
    if reasons:
        raise UnsupportedLayerError(f"the augmented layer does not fit layer '{found.name}'", reasons)
    kind = TilesModule if isinstance(augmented.linear, TileKernel) else AugmentedModule
    module = kind(
        augmented, added_padding=found.padding, hyper_parameters=_hyper_parameters(found.module)
    ).to(device=found.batch.device, dtype=found.batch.dtype)
    module.train(found.module.training)
    module.in_state_dict = in_state_dict
    _replace(model, found.module, module)
    try:
        _check_in_use(model, module)
    except MoleError:
        _replace(model, module, found.module)
        raise
    return module


def _shape_now(model: nn.Module, augmented: AugmentedLayer) -> Shape:
    """What the model takes before the layer is attached: filled tiles, where one in its place does."""
    part = augmented_part(model)
    if part is None or part.module.plain_shape == augmented.plain_shape:
        return augmented.network_shape if part is None else augmented.input_shape
    return part.module.input_shape


def _refuse_distributed(model: nn.Module) -> None:
    """Wrappers for several processes hold on to the parameters that were there when they were made."""
    for module in model.modules():
        found = DISTRIBUTED & {cls.__name__ for cls in type(module).__mro__}
        if found:
            raise UnsupportedLayerError(
                f"no layer can be attached to a {type(model).__name__}",
                [
                    f"{found.pop()} keeps the parameters of the layer that would be replaced: "
                    "attach to the model itself, and wrap it afterwards"
                ],
            )


def _mismatches(found: FoundLayer, geometry: LayerGeometry | None, augmented: AugmentedLayer) -> list[str]:
    reasons = []
    features = tuple(found.features.shape[1:])
    if features != augmented.output_shape:
        reasons.append(f"the model's first layer gives {features} and this one {augmented.output_shape}")
    old = found.module if found.operation is None else found.operation
    has_bias = getattr(old, "bias", None) is not None
    if has_bias != (augmented.bias is not None):
        one, other = ("a", "none") if has_bias else ("no", "one")
        reasons.append(f"the model's first layer has {one} bias and the augmented layer has {other}")
    if geometry is not None and augmented.geometry is not None and not reasons:
        ours, theirs = (_that_matters(one, augmented) for one in (geometry, augmented.geometry))
        reasons += [
            f"the model's first layer has {name} {ours[name]} and this one was made from a layer with "
            f"{theirs[name]}"
            for name in ours
            if ours[name] != theirs[name]
        ]
    return reasons


def _that_matters(geometry: LayerGeometry, augmented: AugmentedLayer) -> dict[str, Any]:
    """A geometry without what changes no feature: zeros that no window reaches, an unused stride."""
    outputs, axes = augmented.output_shape[1:], len(geometry.kernel)
    inputs = augmented.network_shape[len(augmented.network_shape) - axes :]
    numbers: dict[str, Any] = {"kernel": geometry.kernel, "stride": (), "dilation": (), "padding": ()}
    for axis, (side, positions) in enumerate(zip(inputs, outputs, strict=True)):
        kernel, before = geometry.kernel[axis], geometry.padding[axis][0]
        stride = geometry.stride[axis] if positions > 1 else 1
        dilation = geometry.dilation[axis] if kernel > 1 else 1
        reach = (positions - 1) * stride + dilation * (kernel - 1) + 1
        after = max(0, reach - before - side)
        for name, number in (("stride", stride), ("dilation", dilation), ("padding", (before, after))):
            numbers[name] = (*numbers[name], number)
    return numbers | {"groups": geometry.groups}


def _hyper_parameters(module: nn.Module) -> dict[str, Any]:
    """Stride, kernel size and so on, by the names that PyTorch's layers list themselves."""
    if isinstance(module, AugmentedModule):
        return module.hyper_parameters
    own = {*module._parameters, *module._buffers, *module._modules}
    names = (str(name) for name in getattr(module, "__constants__", ()))
    return {name: getattr(module, name) for name in names if hasattr(module, name) and name not in own}


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Put `new` wherever `old` is: a layer can have several names."""
    model = unwrapped(model)
    names = [name for name, module in model.named_modules(remove_duplicate=False) if module is old]
    for name in names:
        model.set_submodule(name, new)


def _check_in_use(model: nn.Module, module: AugmentedModule) -> None:
    try:
        found = layer_in_use(model, module.input_shape)
    except UnsupportedLayerError as error:
        if module.plain_shape is None:
            raise
        plain, whole = (shape_text(shape) for shape in (module.plain_shape, module.input_shape))
        reason = (
            f"zeros make {whole} of {plain} samples to fill tiles, and the model has to take that: ask the "
            f"provider for tiles whose side divides those of {plain}"
        )
        name = type(model).__name__
        raise UnsupportedLayerError(
            f"the augmented layer does not fit {name}", [*error.reasons, reason]
        ) from None
    if found.module is not module:
        raise UnsupportedLayerError(
            f"layer '{found.name}' cannot be replaced",
            ["the model does not reach it through its attributes"],
        )
