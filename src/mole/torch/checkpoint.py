"""Checkpoints: a trained network in one file, with everything it takes to build it again.

The augmented layer is in it, so predicting needs no delivery. There is no code in it: a network that is not
built in has to be given to `load_checkpoint`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from mole.errors import FileError, MoleError, ParameterError
from mole.exchange.checkpoint_files import CheckpointFacts, checkpoint_metadata, key_of, read_checkpoint
from mole.exchange.layer_files import geometry_fields
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.shapes import Array, check_shape
from mole.storage.checked import save_checked
from mole.torch.attach import attach
from mole.torch.models import as_tensors, build_model, fill
from mole.torch.module import AugmentedPart, augmented_part
from mole.torch.networks import NETWORKS, build_network
from mole.torch.running import uncompiled


class Checkpoint(NamedTuple):
    """A network, ready to predict, and what it is."""

    model: nn.Module
    facts: CheckpointFacts


def save_checkpoint(path: str | PathLike[str], model: nn.Module, facts: CheckpointFacts) -> None:
    """Write a network and its augmented layer; a file of that name is replaced when all is written.

        facts = CheckpointFacts("small_vgg", input_shape=(3, 32, 32), classes=10)
        save_checkpoint("model.safetensors", model, facts)

    The facts need no key fingerprint: it is the augmented layer's.
    """
    model = uncompiled(model)
    part = augmented_part(model)
    facts = replace(facts, key_fingerprint=None if part is None else part.module.key_fingerprint)
    tensors = model.state_dict()
    if part is not None:  # the whole layer, also where other checkpoints leave it out
        large = {"weight": part.module.weight, "mixing": part.module.mixing}
        tensors |= {f"{part.name}.{name}": one for name, one in large.items() if one is not None}
    state = {name: _numpy(name, tensor) for name, tensor in tensors.items()}
    metadata = checkpoint_metadata(facts, None if part is None else _description(part))
    save_checked(Path(path), state, metadata)


def load_checkpoint(
    path: str | PathLike[str],
    network: nn.Module | str | Callable[[CheckpointFacts], nn.Module] | None = None,
) -> Checkpoint:
    """Build a network again from its checkpoint, with its augmented layer, ready to predict.

        model, facts = load_checkpoint("model.safetensors")
        model, facts = load_checkpoint("model.safetensors", "networks:resnet")

    Args:
        path: a file that `save_checkpoint` or `mole train` wrote.
        network: needed for one that is not built in: the network, whose weights are replaced, or its
            factory as 'module:function', or a function that makes it from the checkpoint's facts.

    Raises:
        FileError: if the file cannot be read, is damaged, or does not fit the network.
    """
    path = Path(path)
    state, facts, augmented = read_checkpoint(path)
    model = _built_in(facts, path) if network is None else _given(network, facts)
    own: dict[str, Tensor] = {}
    if augmented is not None:
        try:
            module = attach(model, _layer(state, facts, augmented))
        except (MoleError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unusable(path, error) from None
        own = {f"{augmented['name']}.{name}": tensor for name, tensor in module.state_dict().items()}
        state = {name: array for name, array in state.items() if name not in own}
    fill(model, {**as_tensors(state), **own}, str(path))
    return Checkpoint(model.eval(), facts)


def _built_in(facts: CheckpointFacts, path: Path) -> nn.Module:
    """The built-in network of that name. No other name is ever looked up: that could run code."""
    if facts.network not in NETWORKS:
        raise FileError(
            f"{path} holds the network '{facts.network}', which is not built in", advice={"network": None}
        )
    try:
        return build_network(facts.network, facts.input_shape, facts.classes)
    except (MoleError, TypeError, ValueError) as error:
        raise _unusable(path, error) from None


def _given(
    network: nn.Module | str | Callable[[CheckpointFacts], nn.Module], facts: CheckpointFacts
) -> nn.Module:
    if isinstance(network, str):
        return build_model(network, facts.input_shape, facts.classes)
    return network if isinstance(network, nn.Module) else network(facts)


def _unusable(path: Path, error: Exception) -> FileError:
    reason = str(error) if isinstance(error, MoleError) else "its header does not follow the format"
    return FileError(f"{path} does not hold a usable network: {reason}")


def _description(part: AugmentedPart) -> dict[str, Any]:
    """Where the augmented layer stands, and what its tensors do not say."""
    layer = part.module
    return {
        "name": part.name,
        "output_shape": layer.output_shape,
        "kappa": layer.kappa,
        "layout": layer.layout,
        **({} if layer.mixing is None else {"form": "factored"}),
        **({} if layer.geometry is None else {"geometry": geometry_fields(layer.geometry)}),
        **({} if layer.plain_shape is None else {"input_shape": layer.input_shape}),
    }


def _layer(
    state: Mapping[str, Array], facts: CheckpointFacts, description: Mapping[str, Any]
) -> AugmentedLayer:
    name, filled = description["name"], description.get("input_shape")
    return AugmentedLayer(
        weight=state[f"{name}.weight"],
        mixing=state.get(f"{name}.mixing"),
        bias=state.get(f"{name}.bias"),
        input_shape=filled or facts.input_shape,
        output_shape=check_shape(description["output_shape"]),
        kappa=int(description["kappa"]),
        layout=description["layout"],
        key_fingerprint=key_of(state[f"{name}.key_id"]),
        geometry=description.get("geometry"),
        plain_shape=facts.input_shape if filled else None,
    )


def _numpy(name: str, tensor: Tensor) -> Array:
    try:
        array: Array = tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError):
        raise ParameterError(
            f"'{name}' is {tensor.dtype}, which a checkpoint cannot hold: call model.float() first"
        ) from None
    return array
