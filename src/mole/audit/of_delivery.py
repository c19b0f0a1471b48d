"""A delivery as the subject of an audit: what lies there, and what the provider knows about it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mole.audit.plain_images import Delivered, plain_images, public_images
from mole.audit.scoring import Truth
from mole.audit.subject import SCORED, Subject
from mole.data.source import Source
from mole.delivery.artefacts import (
    AUGMENTED,
    SCALES,
    load_delivered_layer,
    load_encoding,
    read_shards,
    shard_names,
)
from mole.delivery.manifest import Manifest
from mole.files.store import Store, digest_of
from mole.geometry import Array, block_size, element_count, roll
from mole.keys import MorphKey
from mole.layer import FirstLayer

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
