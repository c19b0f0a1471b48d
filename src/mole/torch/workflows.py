"""Whole tasks in one call: train a network on a delivery, and run it on requests."""

import hashlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

from mole.errors import DeliveryError, FileError, ParameterError
from mole.exchange.checkpoint_files import CheckpointFacts, resume_path
from mole.exchange.delivery import Delivery
from mole.progress import Progress, no_progress
from mole.storage.atomic import new_file, reason_of
from mole.storage.identities import Identity
from mole.torch.attach import attach
from mole.torch.checkpoint import load_checkpoint, save_checkpoint
from mole.torch.dataset import MorphedDataset
from mole.torch.evaluation import predict
from mole.torch.models import build_model
from mole.torch.resume import ResumeFile
from mole.torch.trainer import Epoch, train


def train_on(
    delivery: str | PathLike[str] | Delivery,
    *,
    out: str | PathLike[str],
    network: str = "small_vgg",
    weights: str | PathLike[str] | None = None,
    epochs: int = 5,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    seed: int = 0,
    device: str | None = None,
    identity: Identity | None = None,
    replace: bool = False,
    progress: Progress = no_progress,
    on_resume: Callable[[int], None] = lambda finished: None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> tuple[Epoch, ...]:
    """Train a network on a delivery, with the augmented layer in place of its first layer.

        train_on("delivery", network="small_resnet", epochs=10, out="model.safetensors")

    It learns from the split 'train', or else the first, and is scored on the last of the others. The state
    after each epoch is kept in `<out>.unfinished`; after an interruption, the same call resumes there.

    Args:
        delivery: an opened delivery, or its folder or URL.
        out: the checkpoint to write.
        network: a built-in network, or 'module:function' for a factory of your own.
        weights: a file of weights to start from.
        epochs: passes over the data.
        batch_size: rows per step.
        learning_rate: its peak.
        seed: the same seed gives the same network on a CPU.
        device: where to train, such as 'cuda'; None for the CPU.
        identity: what opens a sealed delivery: see `Delivery.open`.
        replace: replace a checkpoint of that name, and start over if the kept state is of another training.
        progress: called with the steps done and the steps to do.
        on_resume: called with the number of finished epochs, if training resumes.
        on_epoch: called after each epoch.

    Returns:
        Every epoch, those before an interruption included.

    Raises:
        DeliveryError: if it is no delivery, or has no labels or no augmented layer.
        ParameterError: if the network does not fit, or the training fails.
        FileError: if a file cannot be read or written, or is there already.
    """
    out, opened = Path(out), Delivery.open(delivery, identity=identity)
    _check_output(out, replace=replace)
    dataset, validation = _splits(opened)
    model = _seeded_model(network, dataset, weights, seed)
    _attach_layer_of(opened, model)
    training = {
        "delivery": opened.manifest.delivery_id, "network": network, "weights": _digest(weights),
        "epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed,
        "device": device,
    }  # fmt: skip
    resume_file = ResumeFile(resume_path(out), training, replace=replace)
    history = train(
        model, dataset, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed,
        device=device, validation=validation, resume_file=resume_file, progress=progress,
        on_resume=on_resume, on_epoch=on_epoch,
    )  # fmt: skip
    facts = CheckpointFacts(network, dataset.input_shape, dataset.class_count, dataset.classes)
    save_checkpoint(out, model.cpu(), facts)
    resume_file.remove()
    return history


def predict_on(
    requests: str | PathLike[str] | Delivery,
    *,
    checkpoint: str | PathLike[str],
    split: str | None = None,
    network: str | None = None,
    out: str | PathLike[str] | None = None,
    device: str | None = None,
    identity: Identity | None = None,
    replace: bool = False,
) -> pa.Table:
    """Run a trained network on morphed requests: one row of answers each, as `predict` gives them.

        predict_on("requests", checkpoint="model.safetensors", out="predictions.parquet")

    Args:
        requests: morphed data, opened, or its folder or URL.
        checkpoint: a file that `train_on` or `save_checkpoint` wrote.
        split: which split; None for the only one.
        network: 'module:function' of the network's factory, if it is not built in.
        out: a Parquet file to write the answers to; None for none.
        device: where to run, such as 'cuda'; None for the CPU.
        identity: what opens sealed requests: see `Delivery.open`.
        replace: replace a file of that name.

    Raises:
        ParameterError: if there are several splits to choose from, or the data has another key.
        FileError: if a file cannot be read or written, or is there already.
    """
    opened = Delivery.open(requests, identity=identity)
    if out is not None:
        _check_output(Path(out), replace=replace)
    dataset = MorphedDataset(opened, _only_split(opened) if split is None else split)
    answers = predict(load_checkpoint(checkpoint, network).model, dataset, device=device)
    if out is not None:
        _write(answers, Path(out))
    return answers


def _splits(delivery: Delivery) -> tuple[MorphedDataset, MorphedDataset | None]:
    """What to learn from, and what to score on."""
    if not delivery.has_layer:
        raise _no_layer(delivery)
    dataset = MorphedDataset(delivery, delivery.main_split)
    if dataset.labels is None:
        raise DeliveryError(f"{delivery.label} has no labels to learn from: ask for a delivery with labels")
    others = [name for name in delivery.manifest.splits if name != dataset.split]
    return dataset, MorphedDataset(delivery, others[-1]) if others else None


def _only_split(delivery: Delivery) -> str:
    names = tuple(delivery.manifest.splits)
    if len(names) != 1:
        raise ParameterError(f"{delivery.label} has {len(names)} splits", advice={"split": names})
    return names[0]


def _seeded_model(
    network: str, dataset: MorphedDataset, weights: str | PathLike[str] | None, seed: int
) -> nn.Module:
    """A new network whose first weights the seed decides; nobody else's random numbers change."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return build_model(network, dataset.input_shape, dataset.class_count, weights)


def _attach_layer_of(delivery: Delivery, model: nn.Module) -> None:
    """Attach the layer that came with a delivery; nothing else holds on to it, because it is large."""
    layer = delivery.layer()
    if layer is None:
        raise _no_layer(delivery)
    attach(model, layer)


def _no_layer(delivery: Delivery) -> DeliveryError:
    return DeliveryError(
        f"{delivery.label} came without an augmented layer, for predictions: train on the delivery with it"
    )


def _digest(file: str | PathLike[str] | None) -> str | None:
    """What names a file's content."""
    if file is None:
        return None
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(f"{file} cannot be read: {reason_of(error)}") from None


def _check_output(path: Path, *, replace: bool) -> None:
    """Refuse an output that could not be written, before hours of work."""
    if path.is_dir():
        raise FileError(f"{path} is a folder, and a file is to be written: choose another name")
    if not replace and (path.exists() or path.is_symlink()):
        raise FileError(
            f"{path} exists already: choose another name, or replace it", advice={"replace": True}
        )
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}")


def _write(answers: pa.Table, path: Path) -> None:
    try:
        with new_file(path) as temporary:
            pq.write_table(answers, temporary)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None
