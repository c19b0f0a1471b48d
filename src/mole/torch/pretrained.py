"""Models of Hugging Face with an augmented layer, saved and loaded again.

    save_pretrained(model, "trained")
    model = load_pretrained(ResNetForImageClassification, "trained", "delivery")

Their own `from_pretrained` builds a network with a plain first layer, into which an augmented one does not
fit. Here the network is loaded without it, and the layer is attached afterwards: from the delivery, so that
it need not be in every checkpoint, in which it would be by far the largest part.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from torch import nn

from mole.errors import FileError, LayerFileError, ParameterError
from mole.exchange.checkpoint_files import key_of
from mole.exchange.delivery import AUGMENTED, Delivery
from mole.exchange.layer_files import load_augmented_layer, save
from mole.foreign_text import shown
from mole.scheme.augmented import AugmentedLayer
from mole.storage.atomic import new_folder, reason_of
from mole.storage.identities import Identity
from mole.torch.attach import attach
from mole.torch.module import AugmentedModule, augmented_part
from mole.torch.running import unwrapped

Model = TypeVar("Model", bound=nn.Module)
KEY_ID = ".key_id"


def save_pretrained(model: nn.Module, folder: str | PathLike[str], *, with_layer: bool = False) -> None:
    """Write a model of Hugging Face with an augmented layer into a new folder, as they write models.

    Args:
        model: the model, whose own `save_pretrained` writes its files.
        folder: a folder that does not exist yet; only its owner can read it.
        with_layer: put the augmented layer beside them, so that loading needs no delivery.

    Raises:
        ParameterError: if it is not a model of Hugging Face, or has no augmented layer.
        FileError: if the folder exists already, or cannot be written.
    """
    model, place = unwrapped(model), Path(folder)
    part = augmented_part(model)
    if part is None:
        raise ParameterError("the model has no augmented layer: save it with its own save_pretrained")
    write = getattr(model, "save_pretrained", None)
    if not callable(write):
        raise ParameterError(
            f"a {type(model).__name__} is not a Hugging Face model: save it with mole.torch.save_checkpoint"
        )
    if place.exists() or place.is_symlink():
        raise FileError(f"{place} exists already: choose another name")
    try:
        with new_folder(place) as temporary, _left_out(part.module):
            write(temporary)
            if with_layer:
                save(part.module.layer(), temporary / AUGMENTED)
    except OSError as error:
        raise FileError(f"{place} cannot be written: {reason_of(error)}") from None


def load_pretrained(
    cls: type[Model],
    folder: str | PathLike[str],
    delivery: str | PathLike[str] | Delivery | AugmentedLayer | None = None,
    *,
    identity: Identity | None = None,
) -> Model:
    """Load a model of Hugging Face with its augmented layer, ready to predict.

        load_pretrained(ResNetForImageClassification, "trained", "delivery")

    Args:
        cls: the model's class.
        folder: what `save_pretrained` or a checkpoint of `transformers.Trainer` wrote.
        delivery: where the augmented layer is: a delivery, opened or not, or the layer itself. None for one
            that lies in the folder.
        identity: what opens a sealed delivery: see `Delivery.open`.

    Raises:
        FileError: if the folder holds no such model, or one for another key.
    """
    place = Path(folder)
    key_id = _key_of(place)
    layer = _layer(place, delivery, identity)
    if layer.key_fingerprint != key_id:
        raise FileError(
            f"{place} was trained with the augmented layer of key {key_id}, and this one is of "
            f"{layer.key_fingerprint}: give the delivery that it was trained on"
        )
    model, told = _without_layer(cls, place)
    module = attach(model, layer)
    part = augmented_part(model)
    prefix = "" if part is None else part.name
    problems = [name for names in told.values() for name in names if not name.startswith(f"{prefix}.")]
    if problems:
        listed = ", ".join(shown(name) for name in sorted(problems)[:4])
        raise FileError(f"{place} does not hold a {cls.__name__} as its config describes it: see {listed}")
    module.train(model.training)
    return model


def _without_layer(cls: type[Model], place: Path) -> tuple[Model, Mapping[str, list[str]]]:
    """The model with a first layer that means nothing, and what did not fit into it, by kind."""
    load: Any = getattr(cls, "from_pretrained", None)
    if not callable(load):
        raise ParameterError(f"{cls.__name__} is not a Hugging Face model: use mole.torch.load_checkpoint")
    try:
        with _silent("transformers"):  # it would tell at length of the layer that is attached next
            model, told = load(
                str(place), local_files_only=True, use_safetensors=True, ignore_mismatched_sizes=True,
                output_loading_info=True,
            )  # fmt: skip
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise FileError(f"{place} cannot be loaded as {cls.__name__}: {shown(error, 200)}") from None
    kinds = ("missing_keys", "unexpected_keys", "mismatched_keys")
    return model, {kind: [one if isinstance(one, str) else one[0] for one in told[kind]] for kind in kinds}


def _layer(
    place: Path, delivery: str | PathLike[str] | Delivery | AugmentedLayer | None, identity: Identity | None
) -> AugmentedLayer:
    if isinstance(delivery, AugmentedLayer):
        return delivery
    if delivery is None:
        if not (place / AUGMENTED).exists():
            raise FileError(f"{place} does not hold the augmented layer", advice={"delivery": None})
        return load_augmented_layer(place / AUGMENTED)
    opened = Delivery.open(delivery, identity=identity)
    layer = opened.layer()
    if layer is None:
        raise FileError(f"{opened.label} came without an augmented layer: give the one that it came with")
    return layer


def _key_of(place: Path) -> str:
    """The fingerprint of the key that a saved model's augmented layer was made with."""
    if not place.is_dir():
        raise FileError(f"{place} is not a folder that a model was saved in")
    for path in sorted(place.glob("model*.safetensors")):
        try:
            with safe_open(path, framework="np") as file:
                for name in file.keys():  # noqa: SIM118  (it is not a dictionary)
                    if name.endswith(KEY_ID):
                        return key_of(file.get_tensor(name))
        except (OSError, SafetensorError, ValueError, TypeError, LayerFileError) as error:
            raise FileError(f"{path} is damaged: {shown(error, 200)}") from None
    raise FileError(f"{place} holds no model with an augmented layer: load it with its own from_pretrained")


@contextmanager
def _silent(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _left_out(module: AugmentedModule) -> Iterator[None]:
    before, module.in_state_dict = module.in_state_dict, False
    try:
        yield
    finally:
        module.in_state_dict = before
