"""Photographs that come with scikit-image, as plain data, and how alike two pictures are to the eye."""

import numpy as np
import skimage.data
from PIL import Image
from skimage.metrics import structural_similarity

from mole.audit.pictures import stretched
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array

# Of each the square in which its subject stands: left, top, side. All are free to use.
SQUARES = {
    "chelsea": (75, 0, 300),
    "coffee": (110, 0, 400),
    "astronaut": (70, 0, 300),
    "rocket": (180, 40, 300),
}
CAT = "chelsea"


def photograph(name: str, side: int) -> Array:
    """Pixels from 0 to 1 of a photograph's square, (3, side, side).

    >>> photograph("chelsea", 16).shape
    (3, 16, 16)
    """
    left, top, length = SQUARES[name]
    whole = Image.fromarray(np.asarray(getattr(skimage.data, name)()))
    square = whole.resize((side, side), Image.Resampling.LANCZOS, (left, top, left + length, top + length))
    return np.asarray(square, np.float64).transpose(2, 0, 1) / 255


def own_normalisation(pixels: Array) -> Normalisation:
    """What brings the channels of some pixels, (channels, ...), to mean 0 and deviation 1."""
    flat = pixels.reshape(len(pixels), -1)
    return Normalisation(tuple(map(float, flat.mean(axis=1))), tuple(map(float, flat.std(axis=1))))


def likeness(plain: Array, morphed: Array) -> float:
    """Structural similarity of two samples, (channels, height, width), or of one with the other's negative.

    Both are shown as pictures whose mean is mid-grey and whose contrast is the same, so that neither the
    size nor the sign of the numbers counts: an eye would not mind either.

    >>> picture = np.linspace(0, 1, 192).reshape(3, 8, 8)
    >>> round(likeness(picture, -7 * picture), 6)
    1.0
    """
    one, other = stretched(plain), stretched(morphed)
    return max(_similarity(one, other), _similarity(one, 1 - other))


def _similarity(one: Array, other: Array) -> float:
    return float(structural_similarity(one, other, channel_axis=0, data_range=1.0))
