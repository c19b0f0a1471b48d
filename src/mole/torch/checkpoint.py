"""Checkpoints: a trained network in one sealed safetensors file, with all it takes to build it again.

The augmented layer is in it, so predicting needs no delivery. No code is in it: a network that is not
built in has to be handed to `load_checkpoint`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mole.augmented import AugmentedLayer
from mole.errors import FileError, LayerFileError, MoleError, ParameterError
from mole.files.sealed import load_sealed, read_metadata, save_sealed
from mole.geometry import Array, Shape, check_shape
from mole.torch.attach import attach
from mole.torch.batches import augmented_part
from mole.torch.loading import fill
from mole.torch.module import AugmentedModule
from mole.torch.networks import NETWORKS, build_network

FORMAT, VERSION = "mole-checkpoint", "1"


@dataclass(frozen=True)
class CheckpointFacts:
    """What a network is.

    Attributes:
        network: name of a built-in network, or any other name.
        input_shape: shape of a sample.
        classes: how many classes it tells apart.
        class_names: their names, if there are any.
        key_fingerprint: the key of its augmented layer; filled in when it is saved.
    """

    network: str
    input_shape: Shape
    classes: int
    class_names: tuple[str, ...] | None = None
    key_fingerprint: str | None = None


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
    save_sealed(Path(path), tensors, {"format": FORMAT, "version": VERSION, **metadata})


def load_checkpoint(path: str | PathLike[str], model: nn.Module | None = None) -> Checkpoint:
    """Build a network again from its checkpoint, with its augmented layer, ready to predict.

    Args:
        path: a file that `save_checkpoint` or `mole train` wrote.
        model: the network, for one that is not built in; its weights are replaced.

    Raises:
        FileError: if the file can not be read, is damaged, or does not fit the network.
    """
    path = Path(path)
    state, fields = _read(path)
    try:
        facts = _facts(fields)
        if model is None:
            if facts.network not in NETWORKS:
                raise FileError(
                    f"{path} holds the network '{facts.network}', not a built-in one: give the model"
                )
            model = build_network(facts.network, facts.input_shape, facts.classes)
        if fields["augmented"] is not None:
            attach(model, _layer(state, facts, fields["augmented"]))
    except FileError:
        raise
    except (MoleError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = str(error) if isinstance(error, MoleError) else "its header does not follow the format"
        raise FileError(f"{path} does not hold a usable network: {reason}") from None
    fill(model, {name: torch.from_numpy(array) for name, array in state.items()}, str(path))
    return Checkpoint(model.eval(), facts)


def _read(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    try:
        metadata = read_metadata(path)
    except LayerFileError:
        if not path.is_file():
            raise
        metadata = {}
    if metadata.get("format") != FORMAT:
        raise FileError(f"{path} is no checkpoint: give a file that mole train or save_checkpoint wrote")
    if metadata.get("version") != VERSION:
        raise FileError(f"{path} was written by another version: upgrade morphed-learning")
    state, metadata = load_sealed(path)
    try:
        texts = {name: text for name, text in metadata.items() if name not in ("format", "version")}
        return state, {name: json.loads(text) for name, text in texts.items()}
    except (ValueError, RecursionError):
        raise FileError(f"{path} does not hold a usable network: its header is no JSON") from None


def _facts(fields: Mapping[str, Any]) -> CheckpointFacts:
    names = fields["class_names"]
    return CheckpointFacts(
        network=str(fields["network"]),
        input_shape=check_shape(fields["input_shape"]),
        classes=int(fields["classes"]),
        class_names=None if names is None else tuple(map(str, names)),
        key_fingerprint=fields["key_fingerprint"],
    )


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
        layout=str(description["layout"]),
        key_fingerprint=bytes(state[f"{name}.key_id"].tolist()).hex(),
    )


def _numpy(name: str, tensor: Tensor) -> Array:
    try:
        array: Array = tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError):
        raise ParameterError(
            f"'{name}' is {tensor.dtype}, which a checkpoint can not hold: call model.float() first"
        ) from None
    return array
