"""Undo a delivery with its key: the images and labels again, in the order of the source.

arrays = recover("delivery", key)
arrays["x_train"], arrays["y_train"], arrays["row_id_train"]
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.progress import Progress, no_progress
from mole.provider.image_names import source_split
from mole.provider.keys import MorphKey
from mole.provider.row_numbers import RowNumbers
from mole.provider.sealing import opened_with
from mole.scheme.filling import without_filling
from mole.scheme.shapes import roll
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.sources.source import Source
from mole.storage.identities import Identity
from mole.storage.stores import Store

Address = str | os.PathLike[str]
Arrays = dict[str, npt.NDArray[Any]]
LOOKED_AT = 1024  # rows, to see how exact they are


class _Rows(NamedTuple):
    """Samples, labels and row ids of a shard."""

    samples: npt.NDArray[Any]
    labels: npt.NDArray[np.int64] | None
    ids: Sequence[str]


def refuse_protected(delivery: Delivery) -> None:
    """Refuse a delivery that holds no images.

    Raises:
        DeliveryError: with the reason.
    """
    if delivery.manifest.protection is not None:
        raise DeliveryError(
            f"{delivery.label} cannot be turned back into images: it is protected, and holds features of "
            "them with noise that was never stored, which no key takes away"
        )


def recover(
    delivery: Delivery | Store | Address,
    key: MorphKey,
    *,
    identity: Identity | None = None,
    progress: Progress = no_progress,
) -> Arrays:
    """Arrays x_<split> of samples, (n, *shape), y_<split> of labels, row_id_<split> of row ids.

    Each sample comes once, however many views of it were delivered, and has the number type of the source:
    see `Preparation.pixels`. A delivery that was sealed under
    the key opens with it; one that was sealed otherwise needs an identity.

    Raises:
        DeliveryError: if the key is not the one that made the delivery, or the delivery is protected.
    """
    opened = opened_for(delivery, key, identity)
    refuse_protected(opened)
    arrays: Arrays = {}
    done, total = 0, sum(facts.rows // facts.views for facts in opened.manifest.splits.values())
    for split in opened.manifest.splits:
        shards, numbers = [], RowNumbers.of(opened, key, split)
        for rows in _recovered(opened, key, split, numbers):
            shards.append(rows)
            done += len(rows.ids)
            progress(done, total)
        ids = [row_id for rows in shards for row_id in rows.ids]
        order = np.argsort(numbers.samples_of(ids))
        labels = [rows.labels for rows in shards if rows.labels is not None]
        arrays[f"x_{split}"] = np.concatenate([rows.samples for rows in shards])[order]
        if labels:
            arrays[f"y_{split}"] = np.concatenate(labels)[order]
        arrays[f"row_id_{split}"] = np.array(ids, dtype="U16")[order]
    return arrays


def row_table(
    delivery: Delivery | Store | Address,
    key: MorphKey,
    source: Source | Address | None = None,
    *,
    identity: Identity | None = None,
) -> pa.Table:
    """Which row is which sample: a table of split, index in the source and row_id, in the source's order.

    Where samples have several views, a column `view` counts them from 0, which is the sample itself. With
    the source at hand it has a column `name`, too: what the source calls the sample. No pixel is read.

    Raises:
        DeliveryError: if the key is not the one that made the delivery, or the source is another.
    """
    opened = opened_for(delivery, key, identity)
    data = None if source is None else open_source(source, labels=False)
    columns: dict[str, list[Any]] = {name: [] for name in ("split", "index", "view", "name", "row_id")}
    for split in opened.manifest.splits:
        ids = opened.row_ids(split)
        numbers = RowNumbers.of(opened, key, split)
        rows = sorted(zip(numbers.numbers_of(ids), ids, strict=True))
        samples = [number // numbers.views for number, _ in rows]
        columns["split"] += [split] * len(rows)
        columns["index"] += samples
        columns["view"] += [number % numbers.views for number, _ in rows]
        columns["row_id"] += [row_id for _, row_id in rows]
        if data is not None:
            part = source_split(data, opened, split)
            columns["name"] += [part.name_of(sample) for sample in samples]
    if data is None:
        columns.pop("name")
    if not any(columns["view"]):
        columns.pop("view")
    return pa.table(columns)


def largest_error(opened: Delivery, key: MorphKey) -> float:
    """About how far a value that comes back from 8 bits is off, in the units of the source; 0 for others.

    Storing rounds every morphed value by up to half a step. What that becomes in images is computed for
    errors drawn at random, because the true ones went with the values. Whole numbers are told as they come
    back, rounded. Rows that 8 bits cut off are further off than this.
    """
    manifest, scales = opened.manifest, opened.encoding.scales
    if scales is None:
        return 0.0
    shape, count = manifest.input_shape, max(1, min(manifest.rows, LOOKED_AT))
    words = key.stream("rounding-errors").take(count * len(scales)).reshape(count, len(scales))
    errors = ((words / 2.0**64 - 0.5) * scales).astype(np.float32)
    nothing = np.zeros((1, len(scales)), np.float32)
    plain = roll(key.morphing.unmorph(errors) - key.morphing.unmorph(nothing), shape)
    plain = without_filling(plain, manifest.network_shape)
    if manifest.normalisation is not None:
        plain = plain * np.reshape(manifest.normalisation.std, (-1,) + (1,) * (len(shape) - 1))
    largest = float(np.abs(plain).max())
    tops = [
        np.iinfo(facts.source_dtype).max
        for facts in manifest.splits.values()
        if facts.source_dtype[0] == "u"
    ]
    return float(np.rint(largest * max(tops))) if tops else largest


def opened_for(
    delivery: Delivery | Store | Address, key: MorphKey, identity: Identity | None = None
) -> Delivery:
    """A delivery that was made with this key, opened.

    Raises:
        DeliveryError: if it was made with another one.
    """
    opened = opened_with(delivery, key, identity)
    made_with = opened.manifest.key_fingerprint
    if made_with != key.fingerprint:
        raise DeliveryError(
            f"{opened.label} was made with key {made_with}, and this one is {key.fingerprint}: use that key"
        )
    return opened


def _recovered(delivery: Delivery, key: MorphKey, split: str, numbers: RowNumbers) -> Iterator[_Rows]:
    """The samples of each shard of a split, as they were in the source; none for one without shards."""
    manifest = delivery.manifest
    shape = manifest.network_shape
    preparation = Preparation(shape, manifest.normalisation)
    if not delivery.split(split).shards:
        nothing = np.zeros((0, *shape), np.float32)
        yield _Rows(preparation.pixels(nothing, delivery.split(split).source_dtype), None, ())
    for shard in delivery.shards(split):
        first = numbers.first_views(shard.row_ids)
        morphed = delivery.encoding.decode(shard.values[first])
        plain = roll(key.morphing.unmorph(morphed), manifest.input_shape)
        samples = preparation.pixels(without_filling(plain, shape), delivery.split(split).source_dtype)
        labels = None if shard.labels is None else shard.labels[first]
        yield _Rows(samples, labels, [shard.row_ids[place] for place in first])
