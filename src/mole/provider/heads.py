"""Takes a trained head home: from the augmented layer's secret coordinates to plain features.

The developer's head is a classifier of what the augmented layer gives: the first layer's features, in the
key's order. With the key the provider undoes both, once; from then on no key is needed.

    write_head(Path("head.onnx"), home_head(Path("head.safetensors"), layer, key))
"""

from pathlib import Path

import numpy as np

from mole.errors import FileError
from mole.exchange.head_checkpoint import TrainedHead, read_trained_head
from mole.foreign_text import shown
from mole.protection.head import Head
from mole.protection.head_file import HomeHead
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import shape_text

CLOSE = 1e-2  # of its largest number: a layer stored in 16 bits is still the same


def home_head(checkpoint: Path, layer: FirstLayer, key: MorphKey) -> HomeHead:
    """The head of plain features that a developer's checkpoint holds.

    Args:
        checkpoint: a linear head that the developer trained on a protected delivery.
        layer: the first layer of that delivery.
        key: its key.

    Raises:
        FileError: if the file cannot be used, or belongs to another key or first layer.
    """
    trained = read_trained_head(checkpoint)
    if trained.key_fingerprint != key.fingerprint:
        raise FileError(
            f"{checkpoint} was trained on data of key {shown(trained.key_fingerprint)}, and this key is "
            f"{key.fingerprint}: give the key of that delivery"
        )
    _check_layer(checkpoint, trained, layer, key)
    order = key.channel_order(layer.channels)
    unshuffled = np.empty_like(trained.head.weight)
    unshuffled[:, order] = trained.head.weight  # the first layer's own order
    weight = unshuffled @ layer.weight.astype(np.float64)
    return HomeHead(
        Head(weight, trained.head.intercept),
        trained.front, trained.clip, trained.class_names, trained.mode, trained.resize,
    )  # fmt: skip


def _check_layer(checkpoint: Path, trained: TrainedHead, layer: FirstLayer, key: MorphKey) -> None:
    """Refuse a head whose augmented layer is not the one that this first layer and key give.

    Raises:
        FileError: it would answer at random otherwise, and nobody would know why.
    """
    if layer.kernel or layer.bias is not None or layer.input_shape != key.input_shape:
        raise FileError(
            f"the first layer, {layer.kind} on {shape_text(layer.input_shape)}, is not that of a linear "
            f"head on {shape_text(key.input_shape)}: give that of the delivery that {checkpoint} was "
            "trained on"
        )
    ours = augment(layer, key, dtype="float64", form="dense").matrix
    if ours.shape != trained.augmented.shape or not np.allclose(
        ours, trained.augmented, rtol=0, atol=CLOSE * float(np.abs(ours).max())
    ):
        raise FileError(
            f"{checkpoint} was trained with another first layer: give the one of the delivery that it was "
            "trained on"
        )
