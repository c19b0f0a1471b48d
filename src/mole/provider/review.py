"""What a first layer would let the developer see: a look before it is augmented.

The augmented layer gives the developer the layer's features of every image, and features of a convolution
are filtered images. A developer who means harm can also ask for a layer that simply copies pixels, which
`mole.provider.copying` finds.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from mole.provider.copying import Copies, copies_of
from mole.provider.picture_sheet import draw_sheet
from mole.scheme.convolution import features_of
from mole.scheme.first_layer import FirstLayer
from mole.scheme.likeness import best_map
from mole.scheme.shapes import Array

RANK_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Review:
    """What the features of some images give away.

    Attributes:
        features: the layer's features, (n, channels, *grid).
        rebuilt: the images as anybody can rebuild them from the features, (n, *input_shape).
        correlation: how well they match the images, 1 being perfect.
        looks_like_image: the best correlation of a single feature map with the grey image, at the map's
            size; None where features are not pictures.
        copies: output channels that copy pixels, alone or two together.
        rank: how many numbers of each patch the features pin down, out of `patch`.
        patch: how many numbers a patch has.
    """

    features: Array
    rebuilt: Array
    correlation: float
    looks_like_image: float | None
    copies: Copies
    rank: int
    patch: int

    @property
    def findings(self) -> list[str]:
        """In plain words, the worst first."""
        return [*told_of_copies(self.copies), *self.told_of_features]

    @property
    def told_of_features(self) -> list[str]:
        """What the features show besides, in plain words."""
        words = []
        if self.rank == self.patch:
            words.append(
                "its features pin down every pixel: whoever puts the channels in order can rebuild the "
                f"images (correlation {self.correlation:.2f})"
            )
        else:
            words.append(
                f"its features pin down {self.rank} of {self.patch} numbers of each patch: rebuilt images "
                f"correlate {self.correlation:.2f} with the originals, and solving for whole images "
                "gives more (an audit with this layer measures how much)"
            )
        if self.looks_like_image is not None:
            words.append(
                f"its best single feature map correlates {self.looks_like_image:.2f} with the grey image: "
                "the developer sees that by looking"
            )
        return words


def told_of_copies(copies: Copies) -> list[str]:
    """What is wrong with a layer that copies pixels, in plain words: it shows without any image."""
    words = []
    if copies.words:
        words.append(f"HOSTILE: its {copies.words}: do not augment it")
    if copies.not_looked_at:
        words.append(f"it is too large to look at {copies.not_looked_at}: they may copy pixels")
    return words


def review_layer(layer: FirstLayer, plain: Array, copies: Copies | None = None) -> Review:
    """Look at a layer with some plain images, (n, *input_shape).

    Args:
        layer: the developer's.
        plain: the images.
        copies: what it copies, if that was looked at already.
    """
    features = features_of(layer, plain)
    kernels = layer.ungrouped_weight.reshape(layer.channels, -1).astype(np.float64)
    singular = np.linalg.svd(kernels, compute_uv=False)
    rebuilt = rebuild(layer, features)
    return Review(
        features=features,
        rebuilt=rebuilt,
        correlation=_correlation(rebuilt, plain),
        looks_like_image=best_map(features, plain),
        copies=copies_of(layer) if copies is None else copies,
        rank=int((singular > RANK_TOLERANCE * singular[0]).sum()),
        patch=kernels.shape[1],
    )


def rebuild(layer: FirstLayer, features: Array) -> Array:
    """Images from features: every patch by the pseudo-inverse of the kernels, overlaps averaged.

    That is quick at any size and needs NumPy only. An attacker who solves for whole images, as
    `mole.attacks.tools.deconvolution` does, gets at least as much.
    """
    kernels = layer.ungrouped_weight.reshape(layer.channels, -1).astype(np.float64)
    flat = features.reshape(len(features), layer.channels, -1).astype(np.float64)
    if layer.bias is not None:
        flat = flat - layer.bias.reshape(1, -1, 1)
    patches = np.linalg.pinv(kernels, rcond=RANK_TOLERANCE) @ flat
    shape = (len(features), layer.input_channels, *layer.kernel, *layer.output_grid)
    images: Array = _fold(patches.reshape(shape), layer).reshape(len(features), *layer.input_shape)
    return images.astype(np.float32)


def _fold(patches: Array, layer: FirstLayer) -> Array:
    """Patches, (n, channels, *kernel, *grid), put back where they came from; overlaps averaged."""
    sides = [side + sum(pair) for side, pair in zip(layer.grid, layer.padding, strict=True)]
    total = np.zeros((*patches.shape[:2], *sides))
    counts = np.zeros(sides)
    for tap in np.ndindex(layer.kernel):
        where = tuple(
            slice(at * dilation, at * dilation + stride * (count - 1) + 1, stride)
            for at, dilation, stride, count in zip(
                tap, layer.dilation, layer.stride, layer.output_grid, strict=True
            )
        )
        total[(slice(None), slice(None), *where)] += patches[(slice(None), slice(None), *tap)]
        counts[where] += 1
    inner = tuple(
        slice(before, before + side) for side, (before, _) in zip(layer.grid, layer.padding, strict=True)
    )
    folded: Array = (total / np.maximum(counts, 1))[(slice(None), slice(None), *inner)]
    return folded


def _correlation(one: Array, other: Array) -> float:
    a, b = one.ravel() - one.mean(), other.ravel() - other.mean()
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length > 0 else 0.0


def contact_sheet(review: Review, plain: Array, *, maps: int = 6) -> Image.Image:
    """A picture of images, grey or in colour: each with its strongest maps, and as it can be rebuilt.

    Features of a Linear layer are not maps, and are left out.
    """
    strongest = np.argsort(review.features.reshape(*review.features.shape[:2], -1).std(axis=(0, 2)))[::-1]
    shown = strongest[: maps if review.features.ndim == 4 else 0]
    rows = [
        [_shades(cell) for cell in (_in_colours(image), *features[shown], _in_colours(rebuilt))]
        for image, features, rebuilt in zip(plain, review.features, review.rebuilt, strict=True)
    ]
    numbered = [f"feature map {number + 1}" for number in range(len(shown))]
    return draw_sheet(rows, headings=("your image", *numbered, "rebuilt from features"))


def _in_colours(image: Array) -> Array:
    """An image of three channels as it is, another one in grey."""
    return image if len(image) == 3 else image.mean(axis=0)


def _shades(values: Array) -> Array:
    """Numbers of any size as pixels: the lowest becomes black, the highest white."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)
