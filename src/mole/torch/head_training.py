"""Fits a linear head to a protected delivery, in one step and knowing the noise.

The core of such a delivery is orthogonal, so morphed rows are plain features in other coordinates, with the
same noise in every direction: a head can be fitted to them as they are. It is then written as a classifier
of what the augmented layer gives, which makes it a checkpoint like others. Its coordinates are secret: only
the provider can turn it into a head for plain features.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from mole.errors import ParameterError
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.exchange.delivery import Delivery
from mole.exchange.head_checkpoint import LINEAR_HEAD, training_facts
from mole.progress import Progress, no_progress
from mole.protection.head import Head, fit_noisy_head
from mole.protection.known_channel import KnownChannel
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.shapes import Array, element_count, shape_text
from mole.scores import Score
from mole.storage.identities import Identity
from mole.torch.answering import check_output
from mole.torch.attach import attach
from mole.torch.checkpoint import save_checkpoint
from mole.torch.dataset import MorphedDataset
from mole.torch.evaluation import evaluate
from mole.torch.networks import build_network
from mole.torch.splits import no_layer, splits_of

WORST_CONDITION = 1e4  # of a first layer: beyond, 32 bits do not tell what it was given


@dataclass(frozen=True, eq=False)
class FittedHead:
    """What was learned.

    Attributes:
        model: the network: augmented layer, and head.
        rows: how many rows it was fitted to.
        sigma: the noise in them.
        scores: how good it is on the noisy rows of each split; clean ones are easier.
    """

    model: nn.Module
    rows: int
    sigma: float
    scores: dict[str, Score]


def fit_head_on(
    delivery: str | PathLike[str] | Delivery,
    *,
    out: str | PathLike[str],
    identity: Identity | None = None,
    replace: bool = False,
    progress: Progress = no_progress,
) -> FittedHead:
    """Fit a linear head to a protected delivery, and write it as a checkpoint.

        fit_head_on("delivery", out="head.safetensors")

    Args:
        delivery: an opened delivery, or its folder or URL.
        out: the checkpoint to write.
        identity: what opens a sealed delivery: see `Delivery.open`.
        replace: replace a file of that name.
        progress: called with the rows read and the rows to read.

    Raises:
        DeliveryError: if it is not a delivery, or has no labels or no augmented layer.
        ParameterError: if it is not protected, or its first layer is not that of a linear head.
        FileError: if the checkpoint cannot be written, or is there already.
    """
    out, opened = Path(out), Delivery.open(delivery, identity=identity)
    check_output(out, replace=replace)
    protection = opened.manifest.protection
    if protection is None:
        raise ParameterError(
            f"{opened.label} holds images and no features of them: train a network, and no linear head"
        )
    splits = splits_of(opened)
    layer = opened.layer()
    if layer is None:
        raise no_layer(opened)
    matrix = _undoable(layer, opened)
    channel = KnownChannel(protection.certificates[splits.learning.split])
    rows, labels = _rows_and_labels(splits.learning, progress)
    known = labels >= 0  # a few below zero stand for 'none' in some data sets
    learned = fit_noisy_head(channel.unbiased(rows[known]), labels[known], channel.spread, splits.classes)
    model = build_network(LINEAR_HEAD, opened.manifest.network_shape, splits.classes)
    attach(model, layer)
    _fill(model, learned, matrix)
    facts = CheckpointFacts(
        LINEAR_HEAD, opened.manifest.network_shape, splits.classes, splits.learning.classes,
        training=training_facts(opened.manifest, splits.learning.split),
    )  # fmt: skip
    save_checkpoint(out, model, facts)
    scored = (splits.learning, *([splits.watched] if splits.watched else []), *splits.others)
    scores = {part.split: evaluate(model, part) for part in scored if _is_labelled(part)}
    return FittedHead(model, int(known.sum()), channel.sigma, scores)


def _is_labelled(part: MorphedDataset) -> bool:
    return part.labels is not None and len(part) > 0 and int(part.labels.min()) >= 0


def _rows_and_labels(dataset: MorphedDataset, progress: Progress) -> tuple[Array, npt.NDArray[np.int64]]:
    """All rows of a split, morphed as they are, and their labels."""
    delivery, rows, labels = dataset.delivery, [], []
    done = 0
    for shard in delivery.shards(dataset.split):
        rows.append(delivery.encoding.decode(shard.values).reshape(len(shard.values), -1))
        labels.append(shard.labels)
        done += len(shard.values)
        progress(done, len(dataset))
    return np.concatenate(rows), np.concatenate([part for part in labels if part is not None])


def _undoable(layer: AugmentedLayer, delivery: Delivery) -> npt.NDArray[np.float64]:
    """The augmented layer as a matrix, (d, d), from whose features its input can be told."""
    size = element_count(layer.input_shape)
    if layer.output_shape != (size,):
        raise ParameterError(
            f"the first layer of {delivery.label} makes {shape_text(layer.output_shape)} of {size} "
            f"features, and a linear head needs {size}: export the first layer of the network {LINEAR_HEAD}"
        )
    matrix = layer.matrix.astype(np.float64)
    if layer.bias is not None or np.linalg.cond(matrix) > WORST_CONDITION:
        raise ParameterError(
            f"the first layer of {delivery.label} does more than turn features: export that of the network "
            f"{LINEAR_HEAD}"
        )
    return matrix


def _fill(model: nn.Module, learned: Head, matrix: npt.NDArray[np.float64]) -> None:
    """Write a head for morphed rows x as one for x A, which is what the augmented layer gives."""
    weight = np.linalg.solve(matrix, learned.weight.T).T
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    with torch.no_grad():
        last.weight.copy_(torch.from_numpy(weight))
        last.bias.copy_(torch.from_numpy(learned.intercept))
