"""A delivery as the subject of an audit: what lies there, and what the provider knows about it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mole.audit.scoring import Truth, correlations
from mole.audit.subject import SCORED, Subject
from mole.errors import MoleError
from mole.exchange.delivery import (
    AUGMENTED,
    SCALES,
    load_delivered_layer,
    load_encoding,
    read_shards,
    shard_names,
)
from mole.exchange.manifest import Manifest
from mole.provider.keys import MorphKey
from mole.provider.recover import source_places
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, block_size, element_count, roll, unroll
from mole.sources.preparation import Preparation, shaped_sample
from mole.sources.source import Source, Split, main_split
from mole.storage.stores import Store, digest_of


class Delivered(NamedTuple):
    """The first rows of a split: morphed samples as float32, and their ids."""

    manifest: Manifest
    split: str
    morphed: Array
    ids: tuple[str, ...]


MOST_ROWS, MOST_BYTES = 10_000, 1 << 29


@dataclass(frozen=True)
class Known:
    """What the provider brings along; each of it may be missing.

    Attributes:
        key: the key of the delivery.
        layer: the developer's first layer.
        truth: the source of the delivery.
        public: other images of the same kind.
    """

    key: MorphKey | None = None
    layer: FirstLayer | None = None
    truth: Source | None = None
    public: Source | None = None


def subject_of_delivery(store: Store, known: Known) -> Subject:
    """Read as much of a delivery as attacks can use, and put the truth beside it."""
    manifest = Manifest.read(store)
    delivered = _read(store, manifest)
    layer, key, warnings = _checked(known, manifest)
    subject = Subject(
        morphed=delivered.morphed,
        kappa=manifest.kappa,
        layout=manifest.layout,
        layer=layer,
        augmented=load_delivered_layer(store) if AUGMENTED in manifest.files else None,
        public=None if known.public is None else public_images(known.public, manifest),
        rows=manifest.rows,
        facts=_facts(delivered, key),
        warnings=(*_damaged(store, manifest, delivered.split), *warnings),
    )
    if key is None:
        return subject
    plain, further = plain_images(delivered, key, known.truth, count=SCORED + subject.pairs_wanted)
    order = None if layer is None else np.asarray(key.channel_order(layer.channels))
    truth = Truth(plain, manifest.normalisation, order)
    return replace(subject, truth=truth, warnings=(*subject.warnings, *further))


def _read(store: Store, manifest: Manifest) -> Delivered:
    """The first morphed samples of a split: they lie in a random order, so they stand for all."""
    split = "train" if "train" in manifest.splits else next(iter(manifest.splits))
    at_most = max(1, min(MOST_ROWS, MOST_BYTES // (4 * element_count(manifest.input_shape))))
    encoding = load_encoding(store, manifest.dtype)
    rows: list[Array] = []
    ids: list[str] = []
    for shard in read_shards(store, manifest, split):
        wanted = at_most - len(ids)
        rows.append(encoding.decode(shard.values[:wanted]))
        ids += shard.row_ids[:wanted]
        if len(ids) >= at_most:
            break
    return Delivered(manifest, split, roll(np.concatenate(rows), manifest.input_shape), tuple(ids))


def _checked(known: Known, manifest: Manifest) -> tuple[FirstLayer | None, MorphKey | None, list[str]]:
    """The layer and the key, unless they are another delivery's; what is wrong with them, in words."""
    warnings = []
    layer, key = known.layer, known.key
    if layer is not None and layer.fingerprint != manifest.layer_fingerprint:
        warnings.append(
            f"The first layer given ({layer.fingerprint}) is not the one this delivery was made for "
            f"({manifest.layer_fingerprint}), so attacks by its developer were not tried."
        )
        layer = None
    if key is None:
        warnings.append("No key was given, so what attacks found could not be compared with the truth.")
    elif key.fingerprint != manifest.key_fingerprint:
        warnings.append(
            f"The key given ({key.fingerprint}) is not the one this delivery was made with "
            f"({manifest.key_fingerprint}), so what attacks found could not be compared with the truth."
        )
        key = None
    return layer, key, warnings


def _damaged(store: Store, manifest: Manifest, split: str) -> list[str]:
    """What is wrong with the files that are looked at, in words."""
    looked_at = (*shard_names({split: manifest.splits[split]}), AUGMENTED, SCALES)
    return [
        f"{name} is not as it was made, so this audit may be about something else: run `mole verify`."
        for name in looked_at
        if name in manifest.files
        and digest_of(store, name) != (manifest.files[name].sha256, manifest.files[name].bytes)
    ]


def _facts(delivered: Delivered, key: MorphKey | None) -> dict[str, Any]:
    manifest, attacked = delivered.manifest, len(delivered.morphed)
    return {
        "audited": "a delivery",
        "rows": f"{manifest.rows:,}, of which {attacked:,} of split '{delivered.split}' were attacked",
        "input shape": "x".join(map(str, manifest.input_shape)),
        "kappa": manifest.kappa,
        "side of the core": block_size(manifest.input_shape, manifest.kappa),
        "core": "not known without its key" if key is None else key.core,
        "stored as": manifest.dtype,
        "key fingerprint": manifest.key_fingerprint,
        "layer fingerprint": manifest.layer_fingerprint,
        "data bytes": manifest.data_bytes,
    }


PUBLIC = 4096
SAME = 0.9  # correlation from which on a source's images are the delivery's
COMPARED = 64
NO_SOURCE = "No source was given: the truth was recovered from the delivery with its key."
OTHER_SOURCE = (
    "The source given does not hold the images of this delivery, so the truth was recovered from the "
    "delivery with its key."
)


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
    """Plain images of the source for delivered rows; None if it holds others, or cannot be read."""
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
