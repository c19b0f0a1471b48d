"""A whole training in one call: from a delivery to a checkpoint."""

import hashlib
import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from mole.errors import FileError, MoleError, MoleWarning
from mole.exchange.checkpoint_files import CheckpointFacts, resume_path
from mole.exchange.delivery import Delivery
from mole.foreign_text import shown
from mole.progress import Progress, no_progress
from mole.scores import Evaluation
from mole.storage.atomic import reason_of
from mole.storage.identities import Identity
from mole.torch.answering import check_output
from mole.torch.checkpoint import save_checkpoint
from mole.torch.evaluation import loss_and_accuracy
from mole.torch.resume import FINISHED, ResumeFile, finished_epochs
from mole.torch.splits import splits_of
from mole.torch.starting import load_trained, starting_model
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
    weight_decay: float = 0.0,
    mixup: float = 0.0,
    cache_features: bool | None = None,
    seed: int = 0,
    device: str | None = None,
    identity: Identity | None = None,
    replace: bool = False,
    progress: Progress = no_progress,
    on_resume: Callable[[int], None] = lambda finished: None,
    on_cache: Callable[[int], None] = lambda size: None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    on_score: Callable[[str, Evaluation], None] = lambda split, score: None,
) -> tuple[Epoch, ...]:
    """Train a network on a delivery, with the augmented layer in place of its first layer.

        train_on("delivery", network="small_resnet", epochs=10, out="model.safetensors")

    It learns from the split 'train', or else the first. After each epoch it is scored on 'val' or
    'validation', if there is one; on all others, 'test' above all, only once, at the end, when the
    checkpoint is written. The state after each epoch is kept in `<out>.unfinished`; after an interruption,
    the same call resumes there. Where `out` holds a finished training that had fewer epochs and was the
    same otherwise, the others are added to it: the learning rate rises and falls once more, and the
    checkpoint is replaced at the end.

    Args:
        delivery: an opened delivery, or its folder or URL.
        out: the checkpoint to write.
        network: a built-in network, or 'module:function' for a factory of your own.
        weights: a file of weights to start from: those of a plain network, or a checkpoint that was
            trained on data of the same key.
        epochs: passes over the data.
        batch_size: rows per step.
        learning_rate: its peak.
        weight_decay: how strongly weights are drawn towards zero.
        mixup: learn from weighted means of two samples, with weights from Beta(mixup, mixup); 0 for none.
        cache_features: keep what the augmented layer gives in memory, instead of computing it in every
            epoch; the result is the same. None does so where it fits into a quarter of the free memory.
        seed: the same seed gives the same network on a CPU.
        device: where to train, such as 'cuda'; None for the CPU.
        identity: what opens a sealed delivery: see `Delivery.open`.
        replace: replace a checkpoint of that name, and start over if the kept state is of another training.
        progress: called with the steps done and the steps to do.
        on_resume: called with the number of finished epochs, if there are any.
        on_cache: called with the bytes of features that are kept in memory, if they are.
        on_epoch: called after each epoch.
        on_score: called at the end with each split that is scored only then, and its score.

    Returns:
        Every epoch, those before an interruption included; where epochs are added to a finished training,
        the added ones.

    Warns:
        MoleWarning: if a split cannot be scored at the end: the checkpoint is complete all the same.

    Raises:
        DeliveryError: if it is not a delivery, or has no labels or no augmented layer.
        ParameterError: if the network does not fit, or the training fails.
        FileError: if a file cannot be read or written, or is there already.
    """
    out, opened = Path(out), Delivery.open(delivery, identity=identity)
    training: dict[str, Any] = {
        "delivery": opened.manifest.delivery_id, "network": network, "weights": _digest(weights),
        "epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed,
        "device": device, **({"weight_decay": weight_decay} if weight_decay else {}),
        **({"mixup": mixup} if mixup else {}),
    }  # fmt: skip
    finished = 0 if replace else finished_epochs(out, training)
    check_output(out, replace=replace or finished > 0)
    splits = splits_of(opened)
    model = starting_model(opened, network, weights, classes=splits.classes, seed=seed)
    if finished:
        load_trained(model, out)
    state = {**training, FINISHED: finished} if finished else training
    resume_file = ResumeFile(resume_path(out), state, replace=replace)
    history = train(
        model, splits.learning, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate,
        weight_decay=weight_decay, mixup=mixup, cache_features=cache_features, seed=seed, device=device,
        finished=finished, validation=splits.watched, resume_file=resume_file, progress=progress,
        on_resume=on_resume, on_cache=on_cache, on_epoch=on_epoch,
    )  # fmt: skip
    names = splits.learning.classes
    shape = opened.manifest.network_shape
    facts = CheckpointFacts(network, shape, splits.classes, names, training=training)
    save_checkpoint(out, model.cpu(), facts)
    resume_file.remove()
    for other in splits.others:
        try:
            score = loss_and_accuracy(model, other, device=device)
        except MoleError as error:
            warnings.warn(
                f"{out} is complete, but split '{shown(other.split)}' cannot be scored: {error}",
                MoleWarning, stacklevel=2,
            )  # fmt: skip
        else:
            on_score(other.split, score)
    return history


def _digest(file: str | PathLike[str] | None) -> str | None:
    """What names a file's content."""
    if file is None:
        return None
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise FileError(f"{file} cannot be read: {reason_of(error)}") from None
