"""Undo a delivery with its key: the images and labels again, in the order of the source."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.data.preparation import Preparation
from mole.delivery.artefacts import load_encoding, read_shards
from mole.delivery.manifest import Manifest
from mole.errors import DeliveryError
from mole.files.store import Store
from mole.geometry import roll
from mole.keys import MorphKey
from mole.progress import Progress, no_progress


def recover(
    store: Store, key: MorphKey, *, progress: Progress = no_progress
) -> dict[str, npt.NDArray[Any]]:
    """Arrays x_<split> of 8-bit pixels, (n, *input_shape), and y_<split> of labels.

    Raises:
        DeliveryError: if the key is not the one that made the delivery.
    """
    manifest = Manifest.read(store)
    if manifest.key_fingerprint != key.fingerprint:
        raise DeliveryError(
            f"{store.shown} was made with key {manifest.key_fingerprint}, and this one is "
            f"{key.fingerprint}: use that key"
        )
    arrays: dict[str, npt.NDArray[Any]] = {}
    done = 0
    for split in manifest.splits:
        pixels, labels = [], []
        ids: list[str] = []
        for images, shard_labels, shard_ids in _recovered(store, manifest, key, split):
            pixels.append(images)
            ids += shard_ids
            if shard_labels is not None:
                labels.append(shard_labels)
            done += len(images)
            progress(done, manifest.rows)
        order = _source_order(key, split, ids, manifest.splits[split].samples)
        arrays[f"x_{split}"] = np.concatenate(pixels)[order]
        if labels:
            arrays[f"y_{split}"] = np.concatenate(labels)[order]
    return arrays


def _recovered(
    store: Store, manifest: Manifest, key: MorphKey, split: str
) -> Iterator[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64] | None, Sequence[str]]]:
    """Pixels, labels and row ids of each shard of a split."""
    encoding = load_encoding(store, manifest.dtype)
    preparation = Preparation(manifest.input_shape, manifest.normalisation)
    for shard in read_shards(store, manifest, split):
        plain = key.morphing.unmorph(encoding.decode(shard.values))
        yield preparation.pixels(roll(plain, manifest.input_shape)), shard.labels, shard.row_ids


def _source_order(key: MorphKey, split: str, ids: Sequence[str], total: int) -> npt.NDArray[np.intp]:
    """Which recovered row comes first, second, ... in the source; skipped samples leave no gap."""
    place = dict(zip(key.row_ids(split, total), key.row_order(split, total).tolist(), strict=True))
    try:
        return np.argsort([place[row_id] for row_id in ids])
    except KeyError:
        raise DeliveryError("a row of the delivery was not made with this key") from None
