"""A setting as the subject of an audit: what a delivery would give away, before any data is touched."""

import numpy as np

from mole.audit.from_elsewhere import with_public_images
from mole.audit.scoring import Truth
from mole.audit.subject import SCORED, Subject
from mole.exchange.shards import Dtype, Encoding
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment
from mole.scheme.first_layer import FirstLayer
from mole.scheme.morphing import CoreKind
from mole.scheme.shapes import Array, block_size, roll, shape_text, unroll
from mole.sources.bundled import bundled_images

FEWEST, MOST, PUBLIC = 2048, 8192, 4096  # images
SPARE = 128  # beyond what attacks with known pairs need


def subject_of_setting(
    layer: FirstLayer, *, kappa: int = 1, core: CoreKind = "orthogonal", dtype: Dtype = "float32"
) -> Subject:
    """Morph bundled images with a throw-away key, as `deliver` would morph yours."""
    images = bundled_images(layer.input_shape, private=_wanted(layer, kappa), public=PUBLIC)
    plain, public = layer.plain(images.private), layer.plain(images.public)
    key = MorphKey.generate(
        layer.input_shape, kappa=kappa, core=core, sample=plain if core == "whitened" else None
    )
    morphed = _stored_and_read(unroll(key.morphing.morph(plain)), dtype)
    order = np.asarray(key.channel_order(layer.channels))
    subject = Subject(
        morphed=roll(morphed, layer.input_shape),
        kappa=kappa,
        layer=layer,
        augmented=augment(layer, key),
        truth=Truth(plain, layer.normalisation, order),
        core=core,
        private=False,
        facts={
            "audited": "a setting, with images that come with the software",
            "images": f"{len(plain):,} ({images.origin})",
            "input shape": shape_text(layer.input_shape),
            "first layer": f"{layer.kind}, {layer.channels} channels",
            "kappa": kappa,
            "core": core,
            "stored as": dtype,
        },
    )
    return with_public_images(subject, public)


def _wanted(layer: FirstLayer, kappa: int) -> int:
    """As many images as the attacks can use: for known pairs, and for the statistics of blocks."""
    side = block_size(layer.input_shape, kappa)
    return min(MOST, max(FEWEST, SCORED + side // kappa + SPARE, 2 * side // kappa + 1))


def _stored_and_read(rows: Array, dtype: Dtype) -> Array:
    encoding = Encoding.fit(dtype, rows)
    return encoding.decode(encoding.encode(rows))
