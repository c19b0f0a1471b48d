"""Image files to pixels, with Pillow. Nothing but pixels comes out: no EXIF, no names, no comments."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from mole.sources.source import Sample

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
# Images too, but of kinds that are not read here: they must not vanish without a word.
OTHER_SUFFIXES = (
    ".gif", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".j2k", ".jfif", ".jpe", ".ppm", ".pgm", ".pbm",
    ".pnm", ".tga", ".psd", ".exr", ".hdr", ".dng", ".cr2", ".nef", ".arw", ".nii", ".svs",
)  # fmt: skip


class ImageError(ValueError):
    """Bytes that are not a usable image; the message says why."""


def decode_image(content: bytes) -> Sample:
    """The pixels of an image file, turned upright as its EXIF says: (h, w) or (h, w, channels).

    Raises:
        ImageError: if it is not an image, damaged, or more than one image.
    """
    try:
        with Image.open(io.BytesIO(content)) as image:
            _check_single(image)
            return _sample(ImageOps.exif_transpose(image))
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise ImageError("it is not an image that can be read, or it is damaged") from None
    except Exception as error:  # a decoder can fail in any way on a damaged file
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"it is not a readable image ({reason})") from None


def _check_single(image: Image.Image) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # a camera's JPEG file with a preview of itself
        raise ImageError(f"it has {frames} pages or frames: save each as an image of its own")


def _sample(image: Image.Image) -> Sample:
    if image.mode == "F":
        return Sample(np.asarray(image), "hw")
    if image.mode == "I" or image.mode.startswith("I;16"):
        return Sample(_sixteen_bits(image), "hw")
    is_transparent = "transparency" in image.info
    if image.mode in ("LA", "La") or (image.mode == "L" and is_transparent):
        return Sample(np.asarray(image.convert("LA")), "hwc")
    if image.mode in ("1", "L"):
        return Sample(np.asarray(image.convert("L")), "hw")
    if image.mode in ("RGBA", "RGBa", "PA") or is_transparent:
        return Sample(np.asarray(image.convert("RGBA")), "hwc")
    return Sample(np.asarray(image.convert("RGB")), "hwc")


def _sixteen_bits(image: Image.Image) -> npt.NDArray[Any]:
    values = np.asarray(image)
    return values.astype(np.uint16) if values.min() >= 0 and values.max() <= 0xFFFF else values
