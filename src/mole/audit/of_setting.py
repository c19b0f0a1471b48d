"""What a setting would give: a key made for the occasion, and images that come with the software."""

import numpy as np

from mole.audit.bundled import bundled_images
from mole.audit.scoring import Truth
from mole.audit.subject import SCORED, Subject
from mole.data.encoding import Encoding
from mole.geometry import Array, block_size, roll, unroll
from mole.keys import MorphKey
from mole.layer import FirstLayer
from mole.provider import augment

FEWEST, MOST, PUBLIC = 2048, 8192, 4096


def subject_of_setting(
    layer: FirstLayer, *, kappa: int = 1, core: str = "orthogonal", dtype: str = "float32"
) -> Subject:
    """Morph bundled images with a throw-away key, as `mole deliver` would morph yours."""
    side = block_size(layer.input_shape, kappa)
    wanted = min(MOST, max(FEWEST, SCORED + side // kappa + 128, 2 * side // kappa + 1))
    images = bundled_images(layer.input_shape, private=wanted, public=PUBLIC)
    plain, public = layer.plain(images.private), layer.plain(images.public)
    key = MorphKey.generate(
        layer.input_shape, kappa=kappa, core=core, sample=plain if core == "whitened" else None
    )
    morphed = _stored_and_read(unroll(key.morphing.morph(plain)), dtype)
    order = np.asarray(key.channel_order(layer.channels))
    return Subject(
        morphed=roll(morphed, layer.input_shape),
        kappa=kappa,
        layer=layer,
        augmented=augment(layer, key),
        public=public,
        truth=Truth(plain, layer.normalisation, order),
        private=False,
        facts={
            "audited": "a setting, with images that come with the software",
            "images": f"{len(plain)} ({images.origin})",
            "input shape": "x".join(map(str, layer.input_shape)),
            "first layer": f"{layer.kind}, {layer.channels} channels",
            "kappa": kappa,
            "core": core,
            "stored as": dtype,
        },
    )


def _stored_and_read(rows: Array, dtype: str) -> Array:
    encoding = Encoding.fit(dtype, rows)
    return encoding.decode(encoding.encode(rows))
