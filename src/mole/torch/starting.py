"""What a training starts from: a new network, weights from a file, or a network that was trained before."""

import warnings
from os import PathLike
from pathlib import Path

import torch
from torch import nn

from mole.errors import FileError, MoleWarning, ParameterError
from mole.exchange.checkpoint_files import is_checkpoint, read_checkpoint, read_facts
from mole.exchange.delivery import Delivery
from mole.foreign_text import shown
from mole.torch.attach import attach
from mole.torch.models import as_tensors, build_model, fill
from mole.torch.module import augmented_part
from mole.torch.running import in_mode, logits_of
from mole.torch.splits import no_layer


def starting_model(
    delivery: Delivery, network: str, weights: str | PathLike[str] | None, *, classes: int, seed: int
) -> nn.Module:
    """A network with the delivery's augmented layer, whose first weights a file or the seed decides.

    Raises:
        DeliveryError: if no augmented layer came with the delivery.
        ParameterError: if the network cannot be built, or tells fewer classes apart than there are.
        FileError: if the weights cannot be read or do not fit.
    """
    trained = None if weights is None or not _is_trained(Path(weights)) else Path(weights)
    if trained is not None:
        _check_key(trained, delivery)
    with torch.random.fork_rng([]):  # nobody else's random numbers change
        torch.manual_seed(seed)
        model = build_model(
            network, delivery.manifest.network_shape, classes, weights if trained is None else None
        )
    _attach_layer_of(delivery, model)
    if trained is not None:
        load_trained(model, trained)
    _check_outputs(model, classes)
    return model


def load_trained(model: nn.Module, path: Path) -> None:
    """Put the weights of a checkpoint into a network; its augmented layer stays the one that is attached.

    Raises:
        FileError: if the file cannot be read or does not fit; the model is then unchanged.
    """
    tensors = as_tensors(read_checkpoint(path).state)
    part = augmented_part(model)
    if part is not None:
        layer = {f"{part.name}.{name}": one for name, one in part.module.state_dict().items()}
        others = {name: one for name, one in tensors.items() if not name.startswith(f"{part.name}.")}
        tensors = {**others, **layer}
    fill(model, tensors, str(path))


def _is_trained(path: Path) -> bool:
    """Whether a file is a checkpoint with an augmented layer, and not weights of a plain network."""
    return is_checkpoint(path) and read_facts(path).key_fingerprint is not None


def _check_key(path: Path, delivery: Delivery) -> None:
    theirs, ours = read_facts(path).key_fingerprint, delivery.manifest.key_fingerprint
    if theirs != ours:
        raise FileError(
            f"{path} was trained on data of key {shown(theirs)} and {delivery.label} has key {ours}, whose "
            "channels come in another order: give weights that were trained on plain data"
        )


def _attach_layer_of(delivery: Delivery, model: nn.Module) -> None:
    """Attach the layer that came with a delivery; nothing else holds on to it, because it is large."""
    layer = delivery.layer()
    if layer is None:
        raise no_layer(delivery)
    attach(model, layer)


def _check_outputs(model: nn.Module, classes: int) -> None:
    """Refuse a network that tells fewer classes apart than there are, before hours of work."""
    part = augmented_part(model)
    if part is None:
        return
    like = part.module.weight
    samples = torch.zeros(2, *part.module.input_shape, dtype=like.dtype, device=like.device)
    with torch.random.fork_rng([]), in_mode(model, training=False), torch.inference_mode():
        outputs = logits_of(model, samples).shape[1]
    if outputs < classes:
        raise ParameterError(
            f"the network tells {outputs} classes apart and the data has {classes}: build it for {classes}"
        )
    if outputs > classes:
        warnings.warn(
            f"the network tells {outputs} classes apart and the data has {classes}: the others will never "
            "be right",
            MoleWarning,
            stacklevel=4,
        )
