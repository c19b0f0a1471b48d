"""A setting as the subject of an audit: what a delivery would give away, before any data is touched."""

from dataclasses import replace

import numpy as np

from mole.audit.crop import Crop, split_crops
from mole.audit.from_delivery import SHOWN_WHOLE, blocks_told
from mole.audit.from_elsewhere import with_public_images
from mole.audit.scoring import Truth
from mole.audit.subject import FEWEST_IMAGES, SCORED, Subject
from mole.errors import ParameterError
from mole.exchange.shards import Dtype, Encoding
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import Layout, TilesLayout
from mole.scheme.morphing import CoreKind, Morphing
from mole.scheme.shapes import Array, roll, shape_text, unroll
from mole.scheme.tile_kernel import check_tiles
from mole.sources.bundled import Pixels, bundled_images

FEWEST, MOST, PUBLIC = 2048, 8192, 4096  # images
SPARE = 128  # beyond what attacks with known pairs need
MOST_WHOLE = 1 << 27  # pixels of whole images, where only crops are attacked: 900 at ImageNet's size


def subject_of_setting(
    layer: FirstLayer,
    *,
    kappa: int = 1,
    tile: int | None = None,
    core: CoreKind = "orthogonal",
    dtype: Dtype = "float32",
) -> Subject:
    """Morph bundled images with a throw-away key, as `deliver` would morph yours; large ones as crops."""
    layout = _layout(layer, kappa, tile)
    crop = Crop.of(layout.name, layer.input_shape, layout.kappa, LayerGeometry.of(layer))
    wanted = _wanted(layout), PUBLIC
    if crop is not None:
        wanted = (max(FEWEST_IMAGES, min(FEWEST, MOST_WHOLE // layout.elements)),) * 2
    images = bundled_images(layer.input_shape, private=wanted[0], public=wanted[1])
    key = MorphKey.generate(
        layer.input_shape,
        kappa=kappa,
        tile=tile,
        core=core,
        sample=layer.plain(images.private[: _samples(layout)]) if core == "whitened" else None,
    )
    order, augmented = np.asarray(key.channel_order(layer.channels)), augment(layer, key)
    facts = {
        "audited": "a setting, with images that come with the software",
        "images": f"{len(images.private):,} ({images.origin})",
        "public images": f"{len(images.public):,} (others; an attacker's may be more alike)",
        "input shape": shape_text(layer.input_shape),
        "first layer": f"{layer.kind}, {layer.channels} channels",
        **blocks_told(layout.name, layout.input_shape, layout.kappa, crop),
        "core": core,
        "stored as": dtype,
    }

    def made(private: Pixels, part: FirstLayer, morphing: Morphing, seen: AugmentedLayer) -> Subject:
        plain = part.plain(private)
        return Subject(
            morphed=roll(_stored_and_read(unroll(morphing.morph(plain)), dtype), part.input_shape),
            kappa=morphing.layout.kappa, layout=layout.name, layer=part, augmented=seen,
            truth=Truth(plain, layer.normalisation, order), core=core, private=False, facts=facts,
        )  # fmt: skip

    if crop is None:
        whole = made(images.private, layer, key.morphing, augmented)
        return with_public_images(whole, layer.plain(images.public))
    part = crop.of_layer(layer)
    morphing, count = crop.of_morphing(key.morphing), crop.further(len(images.private))
    private, further = split_crops(crop.several(images.private, count))
    public, public_further = split_crops(crop.several(images.public, count))
    cropped = made(private, part, morphing, crop.of_augmented(augmented))
    whole = made(images.private[:SHOWN_WHOLE], layer, key.morphing, augmented)
    subject = replace(cropped, crop=crop, whole=whole, further=morphing.morph(part.plain(further)))
    return with_public_images(subject, part.plain(public), further=part.plain(public_further))


def _layout(layer: FirstLayer, kappa: int, tile: int | None) -> Layout:
    if tile is None:
        return Layout.of("rows", layer.input_shape, kappa)
    if kappa != 1:
        raise ParameterError("tiles say themselves how many blocks there are: leave out kappa")
    layout = TilesLayout.of_side(layer.input_shape, tile)
    check_tiles(layer, layout)
    return layout


def _wanted(layout: Layout) -> int:
    """As many images as the attacks can use: for known pairs, and for the statistics of blocks."""
    side, kappa = layout.block, layout.kappa
    return min(MOST, max(FEWEST, SCORED + side // kappa + SPARE, 2 * side // kappa + 1))


def _samples(layout: Layout) -> int:
    """Images that a whitened core learns from: all of them, or as many as have blocks enough."""
    return max(MOST_WHOLE // (4 * layout.elements), -(-4 * layout.block // layout.kappa))


def _stored_and_read(rows: Array, dtype: Dtype) -> Array:
    encoding = Encoding.fit(dtype, rows)
    return encoding.decode(encoding.encode(rows))
