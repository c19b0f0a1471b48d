"""Checkpoints: a trained network in one sealed safetensors file, with all it takes to build it again.

The augmented layer is in it, so predicting needs no delivery. No code is in it: a network that is not
built in has to be handed to `load_checkpoint`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mole.errors import FileError, MoleError, ParameterError
from mole.exchange.checkpoint_files import CHECKPOINT, VERSION, CheckpointFacts, read_checkpoint
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.shapes import Array, check_shape
from mole.storage.checked import save_checked
from mole.torch.attach import attach
from mole.torch.batches import augmented_part
from mole.torch.models import fill
from mole.torch.module import AugmentedModule
from mole.torch.networks import NETWORKS, build_network


class Checkpoint(NamedTuple):
    """A network, ready to predict, and what it is."""

    model: nn.Module
    facts: CheckpointFacts


def save_checkpoint(path: str | PathLike[str], model: nn.Module, facts: CheckpointFacts) -> None:
    """Write a network and its augmented layer; a file of that name is replaced when all is written."""
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    part = augmented_part(model)
    facts = replace(facts, key_fingerprint=None if part is None else part.key_fingerprint)
    fields = {**asdict(facts), "augmented": None if part is None else _description(model, part)}
    tensors = {name: _numpy(name, tensor) for name, tensor in model.state_dict().items()}
    metadata = {name: json.dumps(value) for name, value in fields.items()}
    save_checked(Path(path), tensors, {"format": CHECKPOINT, "version": VERSION, **metadata})


def load_checkpoint(
    path: str | PathLike[str], model: nn.Module | Callable[[CheckpointFacts], nn.Module] | None = None
) -> Checkpoint:
    """Build a network again from its checkpoint, with its augmented layer, ready to predict.

    Args:
        path: a file that `save_checkpoint` or `mole train` wrote.
        model: the network, for one that is not built in, or a function that makes it from the
            checkpoint's facts; its weights are replaced.

    Raises:
        FileError: if the file cannot be read, is damaged, or does not fit the network.
    """
    path = Path(path)
    state, facts, augmented = read_checkpoint(path)
    if model is None and facts.network not in NETWORKS:
        raise FileError(
            f"{path} holds the network '{facts.network}', not a built-in one: give it "
            "(model=, or --network module:factory)"
        )
    if model is not None and not isinstance(model, nn.Module):
        model = model(facts)
    try:
        if model is None:
            model = build_network(facts.network, facts.input_shape, facts.classes)
        if augmented is not None:
            attach(model, _layer(state, facts, augmented))
    except (MoleError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = str(error) if isinstance(error, MoleError) else "its header does not follow the format"
        raise FileError(f"{path} does not hold a usable network: {reason}") from None
    fill(model, {name: torch.from_numpy(array) for name, array in state.items()}, str(path))
    return Checkpoint(model.eval(), facts)


def _description(model: nn.Module, part: AugmentedModule) -> dict[str, Any]:
    """Where the augmented layer stands, and what its tensors do not say."""
    (name, *_) = [name for name, module in model.named_modules() if module is part]
    return {"name": name, "output_shape": part.output_shape, "kappa": part.kappa, "layout": part.layout}


def _layer(
    state: Mapping[str, Array], facts: CheckpointFacts, description: Mapping[str, Any]
) -> AugmentedLayer:
    name = description["name"]
    return AugmentedLayer(
        matrix=state[f"{name}.weight"],
        bias=state.get(f"{name}.bias"),
        input_shape=facts.input_shape,
        output_shape=check_shape(description["output_shape"]),
        kappa=int(description["kappa"]),
        layout=description["layout"],
        key_fingerprint=bytes(state[f"{name}.key_id"].tolist()).hex(),
    )


def _numpy(name: str, tensor: Tensor) -> Array:
    try:
        array: Array = tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError):
        raise ParameterError(
            f"'{name}' is {tensor.dtype}, which a checkpoint cannot hold: call model.float() first"
        ) from None
    return array
