"""A delivery as the subject of an audit: what lies there, and what the provider knows about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mole.audit.scoring import Truth, correlations
from mole.audit.subject import SCORED, Subject
from mole.errors import MoleError
from mole.exchange.delivery import AUGMENTED, Delivery
from mole.exchange.manifest import Manifest
from mole.exchange.shards import SCALES
from mole.provider.keys import MorphKey
from mole.provider.row_numbers import RowNumbers
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, block_size, element_count, roll, shape_text, unroll
from mole.sources.preparation import Preparation
from mole.sources.source import Source

MOST_ROWS, MOST_BYTES = 10_000, 1 << 29  # of morphed data that attacks are given
PUBLIC = 4096  # public images that they are given
SAME, COMPARED = 0.9, 64  # the correlation above which a source's images are the delivery's, over so many
NO_KEY = "No key was given, so what attacks found could not be compared with the truth."
NO_SOURCE = "No source was given: the truth was recovered from the delivery with its key."
OTHER_SOURCE = (
    "The source given does not hold the images of this delivery, so the truth was recovered from the "
    "delivery with its key."
)


@dataclass(frozen=True, eq=False)
class DeliveredRows:
    """The first rows of a split: morphed samples as float32, (n, *input_shape), and their ids."""

    delivery: Delivery
    split: str
    morphed: Array
    ids: Sequence[str]

    @classmethod
    def read(cls, delivery: Delivery) -> "DeliveredRows":
        """As many rows as attacks can use: they lie in a random order, so the first stand for all."""
        manifest, split = delivery.manifest, delivery.main_split
        at_most = max(1, min(MOST_ROWS, MOST_BYTES // (4 * element_count(manifest.input_shape))))
        rows: list[Array] = []
        ids: list[str] = []
        for shard in delivery.shards(split):
            wanted = at_most - len(ids)
            rows.append(delivery.encoding.decode(shard.values[:wanted]))
            ids += shard.row_ids[:wanted]
            if len(ids) >= at_most:
                break
        return cls(delivery, split, roll(np.concatenate(rows), manifest.input_shape), ids)


def subject_of_delivery(
    delivery: Delivery,
    *,
    key: MorphKey | None = None,
    layer: FirstLayer | None = None,
    truth: Source | None = None,
    public: Source | None = None,
) -> Subject:
    """Read as much of a delivery as attacks can use, and put beside it what the provider knows.

    Args:
        delivery: what was handed over.
        key: its key; without it nothing can be compared with the truth.
        layer: the developer's first layer; without it the developer's attacks cannot be tried.
        truth: the source it was made from; without it the truth is recovered with the key.
        public: other images of the same kind, as an attacker may have.
    """
    manifest, rows = delivery.manifest, DeliveredRows.read(delivery)
    layer, layer_warnings = _own_layer(layer, manifest)
    key, key_warnings = _own_key(key, manifest)
    subject = Subject(
        morphed=rows.morphed,
        kappa=manifest.kappa,
        layout=manifest.layout,
        layer=layer,
        augmented=delivery.layer(),
        public=None if public is None else _preparation(manifest).samples(public, PUBLIC),
        rows=manifest.rows,
        facts=_facts(rows, key),
        warnings=(*_damage(delivery, rows.split), *layer_warnings, *key_warnings),
    )
    if key is None:
        return subject
    plain, further = _plain_images(rows, key, truth, count=SCORED + subject.pairs_wanted)
    order = None if layer is None else np.asarray(key.channel_order(layer.channels))
    return replace(
        subject,
        truth=Truth(plain, manifest.normalisation, order),
        warnings=(*subject.warnings, *further),
    )


def _own_layer(layer: FirstLayer | None, manifest: Manifest) -> tuple[FirstLayer | None, list[str]]:
    """The layer, unless it is another delivery's; what is wrong with it."""
    if layer is None or layer.fingerprint == manifest.layer_fingerprint:
        return layer, []
    warning = (
        f"The first layer given ({layer.fingerprint}) is not the one this delivery was made for "
        f"({manifest.layer_fingerprint}), so attacks by its developer were not tried."
    )
    return None, [warning]


def _own_key(key: MorphKey | None, manifest: Manifest) -> tuple[MorphKey | None, list[str]]:
    """The key, unless it is another delivery's; what is wrong with it."""
    if key is None:
        return None, [NO_KEY]
    if key.fingerprint == manifest.key_fingerprint:
        return key, []
    warning = (
        f"The key given ({key.fingerprint}) is not the one this delivery was made with "
        f"({manifest.key_fingerprint}), so what attacks found could not be compared with the truth."
    )
    return None, [warning]


def _damage(delivery: Delivery, split: str) -> list[str]:
    """What is wrong with the files that the audit reads."""
    return [
        f"{name} is not as it was made, so this audit may be about something else: run `mole verify`."
        for name in delivery.damaged([*delivery.shard_names(split), AUGMENTED, SCALES])
    ]


def _facts(rows: DeliveredRows, key: MorphKey | None) -> dict[str, Any]:
    manifest = rows.delivery.manifest
    return {
        "audited": "a delivery",
        "rows": f"{manifest.rows:,}, of which {len(rows.ids):,} of split '{rows.split}' were attacked",
        "input shape": shape_text(manifest.input_shape),
        "kappa": manifest.kappa,
        "side of the core": block_size(manifest.input_shape, manifest.kappa),
        "core": "not known without its key" if key is None else key.core,
        "stored as": manifest.dtype,
        "key fingerprint": manifest.key_fingerprint,
        "layer fingerprint": manifest.layer_fingerprint,
        "data bytes": manifest.data_bytes,
    }


def _plain_images(
    rows: DeliveredRows, key: MorphKey, source: Source | None, *, count: int
) -> tuple[Array, list[str]]:
    """Plain images of the first rows, and what to say about where they come from."""
    recovered = key.morphing.unmorph(rows.morphed[:count])
    if source is None:
        return recovered, [NO_SOURCE]
    given = _from_source(source, rows, key, count)
    if given is None or not _alike(given, recovered):
        return recovered, [OTHER_SOURCE]
    return given, []


def _from_source(source: Source, rows: DeliveredRows, key: MorphKey, count: int) -> Array | None:
    """Plain images of the source for delivered rows; None if it holds others, or cannot be read."""
    delivery, part = rows.delivery, source.splits.get(rows.split)
    if part is None or len(part) != delivery.split(rows.split).samples:
        return None
    try:
        samples = RowNumbers.of(delivery, key, rows.split).samples_of(rows.ids[:count])
        return _preparation(delivery.manifest).plain_samples(part, samples)
    except MoleError:
        return None


def _preparation(manifest: Manifest) -> Preparation:
    """How the delivery's images were prepared."""
    return Preparation(manifest.input_shape, manifest.normalisation, manifest.mode, manifest.resize)


def _alike(some: Array, others: Array) -> bool:
    pairs = correlations(unroll(some[:COMPARED]), unroll(others[:COMPARED]))
    return float(np.median(np.diag(pairs))) >= SAME
