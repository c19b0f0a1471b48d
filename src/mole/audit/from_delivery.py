"""A delivery as the subject of an audit: what lies there, and what the provider knows about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mole.attacks.tools.views import Labels
from mole.audit.crop import Crop, split_crops
from mole.audit.scoring import Truth
from mole.audit.subject import SCORED, Subject, pairs_wanted
from mole.errors import DeliveryError, MoleError
from mole.exchange.delivery import AUGMENTED, Delivery
from mole.exchange.manifest import Manifest
from mole.exchange.shards import SCALES
from mole.foreign_text import shown
from mole.provider.image_views import with_views
from mole.provider.keys import MorphKey
from mole.provider.row_numbers import RowNumbers
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.filling import filled, filled_layer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import TILED, Layout, TilesLayout
from mole.scheme.likeness import correlations
from mole.scheme.shapes import Array, Shape, block_size, element_count, shape_text, unroll
from mole.sources.preparation import Preparation
from mole.sources.source import Source

MOST_ROWS, MOST_BYTES = 30_000, 1 << 28  # of morphed data that attacks are given, and of public images
MOST_READ = 1 << 30  # bytes of whole images that are read for crops of them
SHOWN_WHOLE = 1  # images that are shown whole
SAME, COMPARED = 0.9, 64  # the correlation above which a source's images are the delivery's, over so many
DAMAGED = "{} is not as it was made, so this audit may be about something else: get it again."
OTHER_LAYER = (
    "The first layer given ({}) is not the one this delivery was made for ({}), so attacks by its "
    "developer were not tried."
)
NO_KEY = "No key was given, so what attacks found could not be compared with the truth."
NO_SOURCE = "No source was given: the truth was recovered from the delivery with its key."
ORDER_KNOWN = (
    "The secret order of tiles was told to the attackers: whoever sees what stands in tiles finds out "
    "where they belong, as in a jigsaw puzzle."
)
OTHER_SOURCE = (
    "The source given does not hold the images of this delivery, or is not read as it was then, so the "
    "truth was recovered from the delivery with its key."
)


def most_rows(input_shape: Shape, crop: Crop | None = None) -> int:
    """How many samples of this shape attacks are given; of crops more, as far as whole ones can be read."""
    most = MOST_BYTES if crop is None else MOST_READ
    return max(1, min(MOST_ROWS, most // (4 * element_count(input_shape))))


@dataclass(frozen=True, eq=False)
class Delivered:
    """What lies in a delivery, as far as attacks can use it.

    Attributes:
        delivery: where it was read from.
        split: the one that is attacked.
        morphed, ids, labels: its first rows: morphed samples, (n, *input_shape), their names, and their
            classes; None where they have none.
        rows: of all splits.
        augmented: the augmented layer; None where none came.
        crop: the part of each sample that `morphed` holds; None where that is all of it.
        further: crops from elsewhere in the same samples; None where `morphed` holds all of them.
        first: the first morphed samples, whole, where `morphed` holds crops.
        damaged: names of files that are not as they were made.
    """

    delivery: Delivery
    split: str
    morphed: Array
    ids: Sequence[str]
    labels: Labels | None
    rows: int
    augmented: AugmentedLayer | None
    crop: Crop | None
    further: Array | None
    first: Array
    damaged: Sequence[str]

    @classmethod
    def read(cls, delivery: Delivery) -> "Delivered":
        """Read as many rows as attacks can use: they lie in a random order, so the first stand for all."""
        manifest, split = delivery.manifest, delivery.main_split
        augmented, labels = delivery.layer(), delivery.labels(split)
        geometry = None if augmented is None else augmented.geometry
        crop = Crop.of(manifest.layout, manifest.input_shape, manifest.kappa, geometry)
        most = most_rows(manifest.input_shape, crop)
        if crop is None:
            morphed, ids = delivery.first_rows(split, most)
            first, further = morphed[:0], None
        else:
            count = crop.further(min(most, delivery.split(split).rows))
            crops, ids = delivery.first_rows(split, most, partial(crop.several, further=count))
            morphed, further = split_crops(crops)
            first, _ = delivery.first_rows(split, SHOWN_WHOLE)
        return cls(
            delivery, split, morphed, ids, None if labels is None else labels[: len(ids)],
            manifest.rows, augmented, crop, further, first,
            delivery.damaged([*delivery.shard_names(split), AUGMENTED, SCALES]),
        )  # fmt: skip


def subject_of_delivery(
    delivery: Delivery,
    *,
    key: MorphKey | None = None,
    layer: FirstLayer | None = None,
    truth: Source | None = None,
) -> Subject:
    """Read as much of a delivery as attacks can use, and put beside it what the provider knows.

    Args:
        delivery: what was handed over.
        key: its key; without it nothing can be compared with the truth.
        layer: the developer's first layer; without it the developer's attacks cannot be tried.
        truth: the source it was made from; without it the truth is recovered with the key.

    Raises:
        DeliveryError: if the key is another delivery's.
    """
    manifest, delivered = delivery.manifest, Delivered.read(delivery)
    check_key(delivery, key)
    layer, doubted = own_layer(layer, manifest)
    own = layer
    if layer is not None:
        layer = filled_layer(layer, manifest.input_shape)
    foreign = doubted if key is not None else [*doubted, NO_KEY]
    known, doubts = (None, []) if key is None else _truth(delivered, key, layer, truth)
    subject = Subject(
        morphed=delivered.morphed,
        kappa=manifest.kappa if delivered.crop is None else delivered.crop.kappa,
        layout=manifest.layout,
        layer=layer,
        is_other_layer=bool(doubted),
        augmented=delivered.augmented,
        labels=delivered.labels,
        truth=known,
        facts=_facts(delivered, key),
        warnings=(*map(DAMAGED.format, delivered.damaged), *foreign, *doubts),
        rows=delivered.rows,
        core=None if key is None else key.core,
        sealed=delivery.is_sealed,
    )
    if delivered.crop is None:
        return subject
    part = None if own is None else delivered.crop.of_layer(own)  # no zeros fill the tiles of a crop
    return replace(_cropped(subject, delivered, delivered.crop, key), layer=part)


def _cropped(subject: Subject, delivered: Delivered, crop: Crop, key: MorphKey | None) -> Subject:
    """A subject whose samples are crops, with an augmented layer to match, beside one of whole samples."""
    truth = None
    if key is not None and subject.truth is not None:
        truth = replace(subject.truth, plain=key.morphing.unmorph(delivered.first))
    whole = replace(subject, morphed=delivered.first, kappa=crop.whole.kappa, labels=None, truth=truth)
    return replace(
        subject,
        augmented=None if subject.augmented is None else crop.of_augmented(subject.augmented),
        further=delivered.further,
        crop=crop,
        whole=whole,
    )


def check_key(delivery: Delivery, key: MorphKey | None) -> None:
    """Refuse a key that is another delivery's.

    Raises:
        DeliveryError: with both fingerprints.
    """
    made_with = delivery.manifest.key_fingerprint
    if key is not None and key.fingerprint != made_with:
        raise DeliveryError(
            f"{delivery.label} was made with key {shown(made_with)}, and this one is {key.fingerprint}: "
            "use that key"
        )


def own_layer(layer: FirstLayer | None, manifest: Manifest) -> tuple[FirstLayer | None, list[str]]:
    """The layer, unless it is another delivery's; what is wrong with it."""
    if layer is None or layer.fingerprint == manifest.layer_fingerprint:
        return layer, []
    return None, [OTHER_LAYER.format(layer.fingerprint, manifest.layer_fingerprint)]


def _truth(
    delivered: Delivered, key: MorphKey, layer: FirstLayer | None, source: Source | None
) -> tuple[Truth, list[str]]:
    """Plain images of the first rows, and the channel order; what to say about where they come from."""
    manifest, crop = delivered.delivery.manifest, delivered.crop
    shape, kappa = (
        (manifest.input_shape, manifest.kappa) if crop is None else (crop.input_shape, crop.kappa)
    )
    count = SCORED + pairs_wanted(shape, kappa)
    given = None if source is None else _from_source(source, delivered, key, count)
    order = None if layer is None else np.asarray(key.channel_order(layer.channels))
    morphing = key.morphing if crop is None else crop.of_morphing(key.morphing)
    plain = morphing.unmorph(delivered.morphed[:count])
    is_given = given is not None and _alike(given, plain)
    doubts = [] if is_given else [NO_SOURCE if source is None else OTHER_SOURCE]
    if given is not None and is_given:
        plain = given
    is_shuffled = morphing.tile_order is not None
    truth = Truth(
        morphing.arranged(plain), manifest.normalisation, order,
        plain_shape=manifest.plain_shape if crop is None else None,
        put_back=morphing.put_back if is_shuffled else None,
    )  # fmt: skip
    return truth, [*doubts, ORDER_KNOWN] if is_shuffled else doubts


def _from_source(source: Source, delivered: Delivered, key: MorphKey, count: int) -> Array | None:
    """Plain images of the source for delivered rows; None if it holds others, or cannot be read."""
    delivery, part = delivered.delivery, source.splits.get(delivered.split)
    if part is None or len(part) != delivery.split(delivered.split).samples:
        return None
    try:
        rows = RowNumbers.of(delivery, key, delivered.split)
        preparation = with_views(
            preparation_of(delivery.manifest), key, delivery.manifest.delivery_id, delivered.split,
            samples=len(part), views=rows.views,
        )  # fmt: skip
        plain = preparation.plain_samples(part, rows.numbers_of(delivered.ids[:count]))
        plain = as_morphed(plain, delivery.manifest)
        return plain if delivered.crop is None else delivered.crop(plain)
    except MoleError:
        return None


def preparation_of(manifest: Manifest) -> Preparation:
    """How the delivery's images were prepared."""
    return Preparation(manifest.network_shape, manifest.normalisation, manifest.mode, manifest.resize)


def as_morphed(plain: Array, manifest: Manifest) -> Array:
    """Plain images in the shape of morphed ones: with the zeros that fill their tiles."""
    if manifest.plain_shape is None:
        return plain
    return filled(plain, Layout.of(manifest.layout, manifest.input_shape, manifest.kappa))


def _alike(some: Array, others: Array) -> bool:
    pairs = correlations(unroll(some[:COMPARED]), unroll(others[:COMPARED]))
    return float(np.median(np.diag(pairs))) >= SAME


def _facts(delivered: Delivered, key: MorphKey | None) -> dict[str, Any]:
    manifest, attacked = delivered.delivery.manifest, len(delivered.ids)
    return {
        "audited": "a delivery",
        "rows": f"{delivered.rows:,}, of which {attacked:,} of split '{delivered.split}' were attacked",
        "input shape": shape_text(manifest.network_shape),
        **blocks_told(manifest.layout, manifest.input_shape, manifest.kappa, delivered.crop),
        "side of the core": block_size(manifest.input_shape, manifest.kappa),
        "core": "not known without its key" if key is None else key.core,
        "stored as": manifest.dtype,
        "key fingerprint": manifest.key_fingerprint,
        "layer fingerprint": manifest.layer_fingerprint,
    }


def blocks_told(layout: str, input_shape: Shape, kappa: int, crop: Crop | None) -> dict[str, Any]:
    """How samples are cut, for the page; and which part of them was attacked, where that is not all."""
    if layout not in TILED:
        return {"kappa": kappa}
    side = TilesLayout(input_shape, kappa).tile
    tiles = {"tiles": f"of side {side}, {kappa:,} in each image, all morphed by one core"}
    return tiles if crop is None else tiles | {"attacked part of each image": str(crop)}
