"""Pictures for the audit's page: from arrays of pixels to PNG files in memory."""

import io

import numpy as np
from PIL import Image

from mole.audit.report import Picture
from mole.errors import ShapeError
from mole.geometry import Array, Shape

MIN_SPREAD = 1e-12  # below this an array has one shade only


def picture(caption: str, pixels: Array) -> Picture:
    """A picture from pixels between 0 and 1, (1 or 3, height, width) or (height, width).

    >>> drawn = picture("a grey square", np.full((8, 8), 0.5))
    >>> drawn.caption, drawn.png[1:4]
    ('a grey square', b'PNG')

    Args:
        caption: what it shows; also read aloud to those who can not see it.
        pixels: what is below 0 or above 1 is cut off.
    """
    if pixels.ndim == 2:
        pixels = pixels[np.newaxis]
    if pixels.ndim != 3 or len(pixels) not in (1, 3):
        raise ShapeError(f"an array of shape {pixels.shape} is no picture: give 1 or 3 channels first")
    bytes_ = np.rint(np.clip(np.nan_to_num(pixels), 0, 1) * 255).astype(np.uint8)
    shown = Image.fromarray(bytes_[0] if len(bytes_) == 1 else np.moveaxis(bytes_, 0, -1))
    file = io.BytesIO()
    shown.save(file, "PNG", optimize=True)
    return Picture(caption, file.getvalue())


def stretched(values: Array) -> Array:
    """Numbers of any size as pixels: the mean becomes mid-grey, three standard deviations black or white.

    >>> stretched(np.array([-9.0, 0.0, 0.0, 9.0])).round(2).tolist()
    [0.26, 0.5, 0.5, 0.74]
    """
    spread = max(float(values.std()), MIN_SPREAD)
    pixels: Array = np.clip(0.5 + (values - values.mean()) / (6 * spread), 0, 1)
    return pixels


def can_be_shown(shape: Shape) -> bool:
    """Whether samples of this shape are grey or colour images.

    >>> can_be_shown((3, 32, 32)), can_be_shown((1, 28, 28)), can_be_shown((64,)), can_be_shown((2, 8, 8))
    (True, True, False, False)
    """
    return len(shape) == 3 and shape[0] in (1, 3)
