"""Undo a delivery with its key: the images and labels again, in the order of the source."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mole.errors import DeliveryError
from mole.exchange.delivery import load_encoding, read_shards
from mole.exchange.manifest import Manifest
from mole.exchange.shards import ShardFile, shard_name
from mole.progress import Progress, no_progress
from mole.provider.keys import MorphKey
from mole.scheme.shapes import roll
from mole.sources.preparation import Preparation
from mole.sources.source import Source
from mole.storage.stores import Store


def recover(
    store: Store, key: MorphKey, *, progress: Progress = no_progress
) -> dict[str, npt.NDArray[Any]]:
    """Arrays x_<split> of samples, (n, *input_shape), y_<split> of labels, row_id_<split> of row ids.

    Samples have the number type of the source: see `Preparation.pixels`.

    Raises:
        DeliveryError: if the key is not the one that made the delivery.
    """
    manifest = _read_manifest(store, key)
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
        order = np.argsort(source_places(key, manifest, split, ids))
        arrays[f"x_{split}"] = np.concatenate(pixels)[order]
        if labels:
            arrays[f"y_{split}"] = np.concatenate(labels)[order]
        arrays[f"row_id_{split}"] = np.array(ids, dtype="U16")[order]
    return arrays


def row_table(store: Store, key: MorphKey, source: Source | None = None) -> pa.Table:
    """Which row is which sample: a table of split, index in the source and row_id, in the source's order.

    With the source at hand it has a column `name`, too: how the source calls the sample. No pixel is read.

    Raises:
        DeliveryError: if the key is not the one that made the delivery, or the source is another.
    """
    manifest = _read_manifest(store, key)
    columns: dict[str, list[Any]] = {name: [] for name in ("split", "index", "name", "row_id")}
    for split, facts in manifest.splits.items():
        shards = [shard_name(split, index, facts.shards) for index in range(facts.shards)]
        ids = [row_id for name in shards for row_id in ShardFile(store, name).row_ids()]
        for index, row_id in sorted(zip(source_places(key, manifest, split, ids), ids, strict=True)):
            columns["split"].append(split)
            columns["index"].append(index)
            columns["row_id"].append(row_id)
        if source is not None:
            part = source.splits.get(split)
            if part is None or len(part) != facts.samples:
                raise DeliveryError(
                    f"{store.label} was made from {facts.samples} samples in split '{split}', and the "
                    f"data has {0 if part is None else len(part)}: give the data it was made from"
                )
            start = len(columns["name"])
            columns["name"] += [part.name_of(index) for index in columns["index"][start:]]
    if source is None:
        columns.pop("name")
    return pa.table(columns)


def _read_manifest(store: Store, key: MorphKey) -> Manifest:
    manifest = Manifest.read(store)
    if manifest.key_fingerprint != key.fingerprint:
        raise DeliveryError(
            f"{store.label} was made with key {manifest.key_fingerprint}, and this one is "
            f"{key.fingerprint}: use that key"
        )
    return manifest


def _recovered(
    store: Store, manifest: Manifest, key: MorphKey, split: str
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None, Sequence[str]]]:
    """Samples, labels and row ids of each shard of a split."""
    encoding = load_encoding(store, manifest.dtype)
    preparation = Preparation(manifest.input_shape, manifest.normalisation)
    dtype = manifest.splits[split].source_dtype
    for shard in read_shards(store, manifest, split):
        plain = roll(key.morphing.unmorph(encoding.decode(shard.values)), manifest.input_shape)
        yield preparation.pixels(plain, dtype), shard.labels, shard.row_ids


def source_places(key: MorphKey, manifest: Manifest, split: str, ids: Sequence[str]) -> list[int]:
    """The index in the source of each row; skipped samples are missing among them."""
    which = (manifest.delivery_id, split, manifest.splits[split].samples)
    place = dict(zip(key.row_ids(*which), key.row_order(*which).tolist(), strict=True))
    try:
        return [place[row_id] for row_id in ids]
    except KeyError:
        raise DeliveryError("a row of the delivery was not made with this key") from None
