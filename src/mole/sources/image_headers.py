"""What an image file is, by its header, and whether its end is there: quick, and no pixel is decoded.

A file whose end seems to be missing gets no verdict here. Some programs leave it out, and others write
something behind it: only decoding tells.
"""

from typing import IO, Any

from PIL import ExifTags, Image

from mole.limits import MAX_IMAGE_BYTES
from mole.sources.images import opened_image, read_as
from mole.sources.source import Outline

TAIL = 1 << 16  # bytes at the end of a file, where its end is looked for
TURNED = (5, 6, 7, 8)  # EXIF's orientations that swap the sides
CHANNELS = {"LA": 2, "RGB": 3, "RGBA": 4}
# TIFF's tags for where pieces of an image lie and how long they are: strips, or tiles.
PIECES = ((273, 279), (324, 325))


def image_outline(file: IO[bytes]) -> Outline | None:
    """What decoding an image file would give; None where only decoding tells.

    Raises:
        ImageError: if it is not an image, too large, or more than one image.
    """
    size = file.seek(0, 2)
    file.seek(0)
    if size > MAX_IMAGE_BYTES:
        return None
    with opened_image(file) as image:
        pixels_at = file.tell()
        if not _is_whole(image, file, size, pixels_at):
            return None
        mode = read_as(image)
        # Pillow's own method for PNG files decodes them, for facts that may stand behind the pixels.
        orientation = Image.Image.getexif(image).get(ExifTags.Base.Orientation)
        if orientation in TURNED and image.format == "TIFF":  # which Pillow's versions treat differently
            return None
        sides = image.size if orientation in TURNED else image.size[::-1]
        if mode == "I":
            return Outline(sides, "hw", "uint16") if image.mode.startswith("I;16") else None
        if mode in CHANNELS:
            return Outline((*sides, CHANNELS[mode]), "hwc", "uint8")
        return Outline(sides, "hw", "float32" if mode == "F" else "uint8")


def _is_whole(image: Image.Image, file: IO[bytes], size: int, pixels_at: int) -> bool:
    """Whether a file has its end, and nothing of interest behind the pixels."""
    if image.format in ("JPEG", "MPO"):
        # Pixels never look like the end: a preview in the header may, so that is not searched.
        return b"\xff\xd9" in _tail(file, size, pixels_at if image.format == "JPEG" else 0)
    if image.format == "PNG":
        tail = _tail(file, size, pixels_at)
        return b"IEND" in tail and b"eXIf" not in tail
    if image.format == "BMP":
        file.seek(2)
        return int.from_bytes(file.read(4), "little") <= size
    if image.format == "WEBP":
        file.seek(4)
        return int.from_bytes(file.read(4), "little") + 8 <= size
    return _last_piece_end(image) <= size


def _tail(file: IO[bytes], size: int, start: int) -> bytes:
    file.seek(max(start, size - TAIL))
    return file.read(TAIL)


def _last_piece_end(image: Any) -> int:
    """Where the last piece of a TIFF file's image ends."""
    tags = image.tag_v2
    ends = [0]
    for places, lengths in PIECES:
        ends += [
            place + length
            for place, length in zip(_numbers(tags, places), _numbers(tags, lengths), strict=False)
        ]
    return max(ends)


def _numbers(tags: Any, name: int) -> tuple[int, ...]:
    value = tags.get(name, ())
    return value if isinstance(value, tuple) else (value,)
