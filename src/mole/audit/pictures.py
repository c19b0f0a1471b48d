"""Pictures for the page: small PNG files of samples and maps."""

import io

import numpy as np
import numpy.typing as npt
from PIL import Image

from mole.audit.report import Picture
from mole.geometry import Array, Shape

CHANNELS = (1, 3)


def can_be_shown(shape: Shape) -> bool:
    """Whether samples of this shape are grey or colour images."""
    return len(shape) == 3 and shape[0] in CHANNELS


def picture(caption: str, pixels: Array) -> Picture:
    """An image of pixels from 0 to 1, (channels, height, width)."""
    return Picture(caption, _png(np.clip(pixels, 0, 1)))


def stretched(caption: str, values: Array) -> Picture:
    """An image of any numbers, stretched from black to white, (channels, height, width)."""
    low, high = np.percentile(values, [1, 99])
    return picture(caption, (values - low) / max(float(high - low), 1e-9))


def _png(pixels: Array) -> bytes:
    levels: npt.NDArray[np.uint8] = np.rint(255 * pixels).astype(np.uint8)
    image = Image.fromarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0))
    sink = io.BytesIO()
    image.save(sink, format="PNG", optimize=True)
    return sink.getvalue()
