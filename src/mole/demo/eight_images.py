"""The demo in one picture: eight images, and what each who has the morphed ones makes of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import mole
from mole.attacks import channel_fingerprint
from mole.attacks.tools.views import DeveloperView, LayerGeometry
from mole.audit.pictures import stretched
from mole.demo.arms import MEAN, SHAPE, STD
from mole.exchange.shards import Encoding
from mole.provider.picture_sheet import draw_sheet, save_sheet
from mole.scheme.shapes import Array, roll, unroll
from mole.sources.bundled import Arrays


def draw_picture(path: Path, images: Arrays, layer: mole.FirstLayer, key: mole.MorphKey) -> None:
    """A row for the originals, one for morphed ones, and one for each who tries to get them back."""
    chosen = [int(np.flatnonzero(images["y_test"] == label)[0]) for label in range(8)]
    pixels = images["x_test"][chosen]
    received = _received(layer.plain(pixels[:, np.newaxis]), key)
    another = mole.MorphKey.generate(SHAPE)
    rows: dict[str, Sequence[Array] | Array] = {
        "original": pixels / 255.0,
        "morphed: what the delivered files show": _grey(received),
        "recovered by the provider, with the key": _pixels(mole.unmorph(received, key)),
        "tried with another key": _grey(mole.unmorph(received, another)),
        "rebuilt by a developer who attacks, without a key": _pixels(
            _attacked(received, layer, mole.augment(layer, key))
        ),
    }
    save_sheet(path, draw_sheet([list(row) for row in rows.values()], captions=list(rows)))


def _received(plain: Array, key: mole.MorphKey) -> Array:
    """Plain images as the developer gets them: morphed, and stored in 8 bits."""
    rows = unroll(mole.morph(plain, key))
    stored = Encoding.fit("int8", rows)
    return roll(stored.decode(stored.encode(rows)), SHAPE)


def _attacked(received: Array, layer: mole.FirstLayer, augmented: mole.AugmentedLayer) -> Array:
    """Plain images, as the developer can work them out from what it has."""
    view = DeveloperView(
        morphed=received, kappa=1, augmented=augmented, layer=layer, geometry=LayerGeometry.of(layer)
    )
    found = channel_fingerprint.run(view, np.random.default_rng(0)).images
    assert found is not None  # noqa: S101  (this attack always rebuilds images)
    return found


def _pixels(plain: Array) -> Array:
    """Plain images as pixels between 0 and 1, (n, height, width)."""
    return mole.Normalisation(MEAN, STD).undo(plain)[:, 0]


def _grey(noise: Array) -> list[Array]:
    return [stretched(image[0]) for image in noise]
