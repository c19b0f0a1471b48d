"""Put an augmented layer in place of a model's first layer."""

from typing import Any

from torch import nn

from mole.errors import MoleError, ParameterError, UnsupportedLayerError
from mole.scheme.augmented import AugmentedLayer
from mole.torch.export import describe
from mole.torch.find import FoundLayer, find_first_layer
from mole.torch.module import AugmentedModule
from mole.torch.running import uncompiled


def attach(model: nn.Module, augmented: AugmentedLayer) -> AugmentedModule:
    """Replace the model's first layer, in place; from then on the model takes morphed data.

        attach(model, mole.load("augmented-layer.safetensors"))

    Nothing else in the model changes. The new layer is frozen, and stands where the old one stood: on the
    same device, under the same name in the `state_dict`. An augmented layer that is already there is
    replaced. Hooks on the old layer go with it.

    Returns:
        The module that now stands in the model.

    Raises:
        UnsupportedLayerError: with every reason why it does not fit; the model is then unchanged.
    """
    if not isinstance(augmented, AugmentedLayer):
        raise ParameterError(f"a {type(augmented).__name__} cannot be attached: give an augmented layer")
    found = find_first_layer(model, augmented.input_shape)
    if not isinstance(found.module, AugmentedModule):
        describe(found)  # refuses what an augmented layer could not stand in for
    reasons = _mismatches(found, augmented)
    if reasons:
        raise UnsupportedLayerError(f"the augmented layer does not fit layer '{found.name}'", reasons)
    module = AugmentedModule(
        augmented, added_padding=found.padding, hyper_parameters=_hyper_parameters(found.module)
    ).to(device=found.batch.device, dtype=found.batch.dtype)
    module.train(found.module.training)
    _replace(model, found.module, module)
    try:
        _check_in_use(model, module)
    except MoleError:
        _replace(model, module, found.module)
        raise
    return module


def _mismatches(found: FoundLayer, augmented: AugmentedLayer) -> list[str]:
    reasons = []
    features = tuple(found.features.shape[1:])
    if features != augmented.output_shape:
        reasons.append(f"the model's first layer gives {features} and this one {augmented.output_shape}")
    has_bias = getattr(found.module, "bias", None) is not None
    if has_bias != (augmented.bias is not None):
        one, other = ("a", "none") if has_bias else ("no", "one")
        reasons.append(f"the model's first layer has {one} bias and the augmented layer has {other}")
    return reasons


def _hyper_parameters(module: nn.Module) -> dict[str, Any]:
    """Stride, kernel size and so on, by the names that PyTorch's layers list themselves."""
    if isinstance(module, AugmentedModule):
        return module.hyper_parameters
    own = {*module._parameters, *module._buffers, *module._modules}
    names = (str(name) for name in getattr(module, "__constants__", ()))
    return {name: getattr(module, name) for name in names if hasattr(module, name) and name not in own}


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Put `new` wherever `old` is: a layer can have several names."""
    model = uncompiled(model)
    names = [name for name, module in model.named_modules(remove_duplicate=False) if module is old]
    for name in names:
        model.set_submodule(name, new)


def _check_in_use(model: nn.Module, module: AugmentedModule) -> None:
    found = find_first_layer(model, module.input_shape)
    if found.module is not module:
        raise UnsupportedLayerError(
            f"layer '{found.name}' cannot be replaced",
            ["the model does not reach it through its attributes"],
        )
