"""A trained network in one call: how good it is on a delivery, and what it answers to requests."""

import warnings
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mole.errors import FileError, MoleWarning, ParameterError
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.exchange.delivery import Delivery
from mole.exchange.shards import LABEL
from mole.exchange.split_roles import only_split, split_to_score
from mole.foreign_text import listed, shown
from mole.progress import Progress, no_progress
from mole.scores import Score
from mole.storage.atomic import new_file, reason_of
from mole.storage.identities import Identity
from mole.torch.checkpoint import load_checkpoint
from mole.torch.dataset import MorphedDataset
from mole.torch.evaluation import evaluate, predict


def evaluate_on(
    delivery: str | PathLike[str] | Delivery,
    *,
    checkpoint: str | PathLike[str],
    split: str | None = None,
    network: str | None = None,
    batch_size: int = 256,
    device: str | None = None,
    identity: Identity | None = None,
    progress: Progress = no_progress,
) -> Score:
    """How good a trained network is on a delivery with labels, as `evaluate` tells it.

        evaluate_on("delivery", checkpoint="model.safetensors").auc

    Args:
        delivery: an opened delivery, or its folder or URL.
        checkpoint: a file that `train_on` or `save_checkpoint` wrote.
        split: which split; None for 'test', else 'val' or 'validation', else the only one.
        network: 'module:function' of the network's factory, if it is not built in.
        batch_size: rows at a time.
        device: where to run, such as 'cuda'; None for the CPU.
        identity: what opens a sealed delivery: see `Delivery.open`.
        progress: called with the rows done and the rows to do.

    Warns:
        MoleWarning: if the network was trained on the rows that it is scored on.

    Raises:
        ParameterError: if there are several splits to choose from, the data has no labels, another key or
            other classes.
        FileError: if a file cannot be read.
    """
    opened = Delivery.open(delivery, identity=identity)
    dataset = MorphedDataset(opened, split_to_score(opened) if split is None else split)
    if dataset.labels is None:
        raise ParameterError(f"{opened.label} has no labels to compare with: give a delivery with labels")
    model, facts = load_checkpoint(checkpoint, network)
    if not _same_classes(facts, dataset):
        raise ParameterError(
            f"{checkpoint} tells {listed(facts.class_names or ())} apart and {opened.label} has "
            f"{listed(dataset.classes or ())}, with other numbers: give a network that was trained on these"
        )
    if (facts.training or {}).get("delivery") == opened.manifest.delivery_id and (
        dataset.split == opened.main_split
    ):
        warnings.warn(
            f"{checkpoint} was trained on these very rows, split '{shown(dataset.split)}' of {opened.label}"
            ": this says how well it remembers them, not how well it does on others; ask the provider for "
            "a delivery with a split called test",
            MoleWarning,
            stacklevel=2,
        )
    return evaluate(model, dataset, batch_size=batch_size, device=device, progress=progress)


def predict_on(
    requests: str | PathLike[str] | Delivery,
    *,
    checkpoint: str | PathLike[str],
    split: str | None = None,
    network: str | None = None,
    out: str | PathLike[str] | None = None,
    batch_size: int = 256,
    device: str | None = None,
    identity: Identity | None = None,
    replace: bool = False,
    progress: Progress = no_progress,
) -> pa.Table:
    """Run a trained network on morphed requests: one row of answers each, as `predict` gives them.

        predict_on("requests", checkpoint="model.safetensors", out="predictions.parquet")

    Args:
        requests: morphed data, opened, or its folder or URL.
        checkpoint: a file that `train_on` or `save_checkpoint` wrote.
        split: which split; None for the only one.
        network: 'module:function' of the network's factory, if it is not built in.
        out: a Parquet file to write the answers to; None for none.
        batch_size: rows at a time.
        device: where to run, such as 'cuda'; None for the CPU.
        identity: what opens sealed requests: see `Delivery.open`.
        replace: replace a file of that name.
        progress: called with the rows done and the rows to do.

    Raises:
        ParameterError: if there are several splits to choose from, or the data has another key.
        FileError: if a file cannot be read or written, or is there already.
    """
    opened = Delivery.open(requests, identity=identity)
    if out is not None:
        check_output(Path(out), replace=replace)
    dataset = MorphedDataset(opened, only_split(opened) if split is None else split)
    model, facts = load_checkpoint(checkpoint, network)
    answers = predict(
        model, dataset, batch_size=batch_size, device=device, class_names=facts.class_names,
        progress=progress,
    )  # fmt: skip
    if LABEL in answers.column_names and not _same_classes(facts, dataset):
        answers = answers.drop_columns(LABEL)
        warnings.warn(
            f"labels are left out: {opened.label} has other classes than {checkpoint}",
            MoleWarning,
            stacklevel=2,
        )
    if out is not None:
        _write(answers, Path(out))
    return answers


def check_output(path: Path, *, replace: bool) -> None:
    """Refuse an output that could not be written, before hours of work."""
    if path.is_dir():
        raise FileError(f"{path} is a folder, and a file is to be written: choose another name")
    if not replace and (path.exists() or path.is_symlink()):
        raise FileError(
            f"{path} exists already: choose another name, or replace it", advice={"replace": True}
        )
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}")


def _same_classes(facts: CheckpointFacts, dataset: MorphedDataset) -> bool:
    """Whether a class has the same number in both, as far as they have names."""
    return facts.class_names is None or dataset.classes is None or facts.class_names == dataset.classes


def _write(answers: pa.Table, path: Path) -> None:
    try:
        with new_file(path) as temporary:
            pq.write_table(answers, temporary)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None
