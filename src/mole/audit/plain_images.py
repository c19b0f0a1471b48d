"""The plain images behind delivered rows: from the source, or by means of the key."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mole.audit.scoring import correlations
from mole.data.preparation import Preparation
from mole.data.reading import shaped_sample
from mole.data.source import Source, Split, main_split
from mole.delivery.manifest import Manifest
from mole.delivery.recover import source_places
from mole.errors import MoleError
from mole.geometry import Array, unroll
from mole.keys import MorphKey

PUBLIC = 4096
SAME = 0.9  # correlation from which on a source's images are the delivery's
COMPARED = 64
NO_SOURCE = "No source was given: the truth was recovered from the delivery with its key."
OTHER_SOURCE = (
    "The source given does not hold the images of this delivery, so the truth was recovered from the "
    "delivery with its key."
)


class Delivered(NamedTuple):
    """The first rows of a split: morphed samples as float32, and their ids."""

    manifest: Manifest
    split: str
    morphed: Array
    ids: tuple[str, ...]


def plain_images(
    delivered: Delivered, key: MorphKey, source: Source | None, *, count: int
) -> tuple[Array, list[str]]:
    """Plain images of the first rows, and what there is to say about where they are from."""
    recovered = key.morphing.unmorph(delivered.morphed[:count])
    if source is None:
        return recovered, [NO_SOURCE]
    given = _from_source(source, delivered, key, count)
    if given is None or not _alike(given, recovered):
        return recovered, [OTHER_SOURCE]
    return given, []


def public_images(source: Source, manifest: Manifest) -> Array:
    """Some images of a source, prepared like those of a delivery."""
    split = main_split(source)
    return _plain(split, range(min(PUBLIC, len(split))), manifest)


def _from_source(source: Source, delivered: Delivered, key: MorphKey, count: int) -> Array | None:
    """Plain images of the source for delivered rows; None if it holds others, or can not be read."""
    manifest, split = delivered.manifest, delivered.split
    total, part = manifest.splits[split].samples, source.splits.get(split)
    if part is None or len(part) != total:
        return None
    try:
        return _plain(part, source_places(key, manifest, split, delivered.ids[:count]), manifest)
    except MoleError:
        return None


def _plain(split: Split, indices: Iterable[int], manifest: Manifest) -> Array:
    preparation = Preparation(manifest.input_shape, manifest.normalisation, manifest.mode, manifest.resize)
    return np.concatenate(
        [preparation.plain(shaped_sample(split, index, preparation)[np.newaxis]) for index in indices]
    )


def _alike(some: Array, others: Array) -> bool:
    pairs = correlations(unroll(some[:COMPARED]), unroll(others[:COMPARED]))
    return float(np.median(np.diag(pairs))) >= SAME
