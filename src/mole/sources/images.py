"""Image files to pixels, with Pillow. Nothing but pixels comes out: no EXIF, no names, no comments."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from mole.foreign_text import shown
from mole.limits import MAX_PIXELS
from mole.sources.source import Sample

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
# What Pillow may take them for, whatever they are named: it knows some fifty formats, and hands one of
# them, PostScript, to another program. A JPEG may turn out to be a camera's MPO.
FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
# Images too, but of kinds that are not read here: they must not vanish without a word.
OTHER_SUFFIXES = (
    ".gif", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".j2k", ".jfif", ".jpe", ".ppm", ".pgm", ".pbm",
    ".pnm", ".tga", ".psd", ".exr", ".hdr", ".dng", ".cr2", ".nef", ".arw", ".nii", ".svs",
)  # fmt: skip


# Pillow warns of large images in its own words, before anything here can look at the size.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


TOO_LARGE = f"it has more than {MAX_PIXELS >> 20} million pixels: cut it into parts, or make it smaller"


class ImageError(ValueError):
    """Bytes that are not a usable image; the message says why."""


def decode_image(content: bytes) -> Sample:
    """The pixels of an image file, turned upright as its EXIF says: (h, w) or (h, w, channels).

    Raises:
        ImageError: if it is not an image, damaged, or more than one image.
    """
    with opened_image(io.BytesIO(content)) as image:
        ImageOps.exif_transpose(image, in_place=True)  # otherwise it makes a copy, turned or not
        return _sample(image)


@contextmanager
def opened_image(file: IO[bytes]) -> Iterator[Image.Image]:
    """An image whose header was read, and no pixels yet; what goes wrong with it is an ImageError."""
    try:
        if not file.read(1):
            raise ImageError("it is empty")
        file.seek(0)
        with Image.open(file, formats=FORMATS) as image:
            check_pixel_count(*image.size)
            _check_single(image)
            yield image
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise ImageError("it is not an image that can be read, or it is damaged") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageError(TOO_LARGE) from None
    except Exception as error:  # a decoder can fail in any way on a damaged file
        raise ImageError(f"it is not a readable image ({decoder_reason(error)})") from None


def check_pixel_count(width: int, height: int) -> None:
    """Refuse an image that says it is larger than any is, before room is made for it.

    Raises:
        ImageError: with how large it may be.
    """
    if width * height > MAX_PIXELS:
        raise ImageError(TOO_LARGE)


def decoder_reason(error: Exception) -> str:
    """What a decoder said of a damaged file, in one line; its words may be the file's."""
    return shown(" ".join(str(error).split()) or type(error).__name__, 160)


def _check_single(image: Image.Image) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # a camera's JPEG file with a preview of itself
        raise ImageError(f"it has {frames} pages or frames: save each as an image of its own")


def read_as(image: Image.Image) -> str:
    """Pillow's name for what an image's pixels are read as: F, I, L, LA, RGB or RGBA."""
    if image.mode == "F":
        return "F"
    if image.mode == "I" or image.mode.startswith("I;16"):
        return "I"
    is_transparent = "transparency" in image.info
    if image.mode in ("LA", "La") or (image.mode == "L" and is_transparent):
        return "LA"
    if image.mode in ("1", "L"):
        return "L"
    return "RGBA" if image.mode in ("RGBA", "RGBa", "PA") or is_transparent else "RGB"


def _sample(image: Image.Image) -> Sample:
    mode = read_as(image)
    if mode == "F":
        return Sample(np.asarray(image), "hw")
    if mode == "I":
        return Sample(_sixteen_bits(image), "hw")
    pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    return Sample(pixels, "hw" if mode == "L" else "hwc")


def _sixteen_bits(image: Image.Image) -> npt.NDArray[Any]:
    values = np.asarray(image)
    return values.astype(np.uint16) if values.min() >= 0 and values.max() <= 0xFFFF else values
