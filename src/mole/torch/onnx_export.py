"""A trained network leaves PyTorch as an ONNX file that takes morphed data, for any inference server."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mole.errors import ParameterError
from mole.exchange.checkpoint_files import CheckpointFacts
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import Manifest
from mole.exchange.served_model import FORMAT, INPUT, OUTPUT, Images, ServedFacts, ServedFile, read_served
from mole.foreign_text import shown
from mole.protection.onnx_file import problem_of
from mole.protection.onnx_session import OnnxSession
from mole.scheme.shapes import Shape
from mole.storage.identities import Identity
from mole.storage.typed_json import Fields
from mole.torch.answering import check_output
from mole.torch.checkpoint import load_checkpoint
from mole.torch.module import augmented_part
from mole.torch.onnx_writing import exporter, onnx_of, write_onnx
from mole.torch.running import logits_of, uncompiled
from mole.torch.tiles_served import served_tiles

CLOSE = 1e-4  # between probabilities of PyTorch and of onnxruntime
BATCHES = (1, 5)  # sizes that are tried; the network is written with two


class Probabilities(nn.Module):
    """A classifier, and the softmax of what it gives."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, samples: Tensor) -> Tensor:
        """Probabilities of the classes: (b, *input_shape) to (b, classes)."""
        return torch.softmax(logits_of(self.network, samples).float(), dim=1)


def export_on(
    checkpoint: str | PathLike[str],
    out: str | PathLike[str],
    *,
    network: str | None = None,
    delivery: str | PathLike[str] | Delivery | None = None,
    identity: Identity | None = None,
    overwrite: bool = False,
) -> ServedFile:
    """Write a trained checkpoint as ONNX, for a server.

        export_on("model.safetensors", "model.onnx", delivery="delivery")

    Args:
        checkpoint: a file that `train_on` or `save_checkpoint` wrote, with an augmented layer.
        out: the ONNX file to write.
        network: 'module:function' of the network's factory, if it is not built in.
        delivery: what it was trained on, so that the file says what was done to images.
        identity: what opens a sealed delivery: see `Delivery.open`.
        overwrite: replace a file of that name.

    Raises:
        ParameterError: if it has no augmented layer, or the delivery is another one; or if onnxruntime
            gives other answers than PyTorch.
        FileError: if a file cannot be read or written, or is there already.
    """
    exporter("network")  # before the work
    check_output(Path(out), replace=overwrite)
    images = None if delivery is None else Delivery.open(delivery, identity=identity).manifest
    model, facts = load_checkpoint(checkpoint, network)
    if facts.key_fingerprint is None:
        raise ParameterError(
            f"{checkpoint} has no augmented layer, and a network without one does not understand morphed "
            "data: give a checkpoint that was trained on a delivery"
        )
    if images is not None and images.key_fingerprint != facts.key_fingerprint:
        raise ParameterError(
            f"{checkpoint} was trained for key {facts.key_fingerprint} and the delivery was morphed with "
            f"{shown(images.key_fingerprint)}: give the delivery that it was trained on"
        )
    known = _of_head(facts) if images is None else _of_delivery(images)
    return export_model(model, facts, out, images=known)


def export_model(
    model: nn.Module, facts: CheckpointFacts, out: str | PathLike[str], *, images: Images | None = None
) -> ServedFile:
    """Write a network as ONNX, and see that onnxruntime gives what PyTorch gives.

    Args:
        model: a classifier, with an augmented layer or without one.
        facts: what it is.
        out: the file to write; one of that name is replaced.
        images: what was done to images before they were morphed.

    Raises:
        ParameterError: if it cannot be written with ONNX's own operators, or gives other answers there.
    """
    part = augmented_part(uncompiled(model))
    shape: Shape = facts.input_shape if part is None else part.module.input_shape
    network = Probabilities(uncompiled(model).cpu()).eval()
    with served_tiles(network.network):
        written = onnx_of(network, shape, "network", names=(INPUT, OUTPUT))
    if problem := problem_of(written):
        raise ParameterError(f"this network cannot be served: as ONNX, {problem}")
    session = OnnxSession(written.SerializeToString(), extra="export")
    _check_answers(network, session, shape)
    key = None if part is None else part.module.key_fingerprint
    served = ServedFacts(facts.network, shape, facts.classes, facts.class_names, key, images)
    write_onnx(written, {FORMAT: served.to_json()}, Path(out))
    return read_served(Path(out))


def _check_answers(network: nn.Module, session: OnnxSession, shape: Shape) -> None:
    """See that both give the same for batches of several sizes.

    Raises:
        ParameterError: if they do not.
    """
    generator = torch.Generator().manual_seed(0)
    for size in BATCHES:
        batch = torch.randn(size, *shape, generator=generator)
        with torch.inference_mode():
            expected = network(batch).numpy()
        found = session(batch.numpy())
        if found.shape != expected.shape or not np.allclose(found, expected, atol=CLOSE):
            raise ParameterError(
                "onnxruntime gives other answers for this network than PyTorch does: what it computes "
                "cannot be written as ONNX"
            )


def _of_delivery(manifest: Manifest) -> Images:
    """What a delivery says was done to images."""
    known = Images(manifest.normalisation, manifest.mode, manifest.resize, manifest.layer_fingerprint)
    if manifest.protection is None:
        return known
    clip = next(iter(manifest.protection.certificates.values())).clip
    return replace(known, front=manifest.protection.front, clip=clip)


def _of_head(facts: CheckpointFacts) -> Images | None:
    """What the checkpoint of a linear head says of it; others say nothing."""
    training = Fields(dict(facts.training or {}))
    if "front" not in training.names():
        return None
    return Images(
        None, training.optional("mode", training.text), training.optional("resize", training.text), None,
        training.text("front"), training.number("clip"),
    )  # fmt: skip
