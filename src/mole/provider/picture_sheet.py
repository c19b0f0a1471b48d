"""Rows of small pictures on one sheet, with a heading over each column and a caption before each row."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from mole.errors import FileError, ShapeError
from mole.scheme.shapes import Array
from mole.storage.atomic import new_file, reason_of

SIDE = 96  # pixels that a picture is enlarged to, at most
NARROWEST = 72  # pixels of a column, so that its heading has room
FRAME = 3  # pixels around a picture
HEADING, CAPTION = 44, 168  # height of the line of headings, width of the column of captions
FONT, LINE = 13, 15  # pixels
PAPER, INK = "white", "#222222"


def as_image(pixels: Array) -> Image.Image:
    """A picture from pixels between 0 and 1, (1 or 3, height, width) or (height, width).

    >>> as_image(np.zeros((3, 4, 5))).size
    (5, 4)

    Raises:
        ShapeError: if the array is not a picture.
    """
    if pixels.ndim == 2:
        pixels = pixels[np.newaxis]
    if pixels.ndim != 3 or len(pixels) not in (1, 3):
        raise ShapeError(f"an array of shape {pixels.shape} is not a picture: give 1 or 3 channels first")
    values = np.rint(np.clip(np.nan_to_num(pixels), 0, 1) * 255).astype(np.uint8)
    return Image.fromarray(values[0] if len(values) == 1 else np.moveaxis(values, 0, -1))


def draw_sheet(
    pictures: Sequence[Sequence[Array]], *, headings: Sequence[str] = (), captions: Sequence[str] = ()
) -> Image.Image:
    """A sheet of rows of pictures.

    >>> draw_sheet([[np.zeros((28, 28)), np.ones((14, 14))]], headings=("image", "map")).size
    (180, 134)

    Args:
        pictures: pixels between 0 and 1, grey or in colour. All are brought to the size of the first.
        headings: what each column shows.
        captions: what each row shows.
    """
    height, width = pictures[0][0].shape[-2:]
    factor = max(1, SIDE // max(height, width))
    size = (factor * width, factor * height)
    cell = (max(size[0], NARROWEST) + 2 * FRAME, size[1] + 2 * FRAME)
    left, top = CAPTION if captions else 0, HEADING if headings else 0
    sheet = Image.new("RGB", (left + len(pictures[0]) * cell[0], top + len(pictures) * cell[1]), PAPER)
    for row, cells in enumerate(pictures):
        for column, pixels in enumerate(cells):
            enlarged = as_image(pixels).resize(size, Image.Resampling.NEAREST)
            indent = (cell[0] - size[0]) // 2
            sheet.paste(enlarged, (left + column * cell[0] + indent, top + row * cell[1] + FRAME))
    draw = ImageDraw.Draw(sheet)
    for column, heading in enumerate(headings):
        _write(draw, heading, (left + column * cell[0], 0, cell[0], top))
    for row, caption in enumerate(captions):
        _write(draw, caption, (0, top + row * cell[1], left, cell[1]))
    return sheet


def save_sheet(path: Path, sheet: Image.Image) -> None:
    """Save a sheet as a PNG file that only its owner can read: it shows people's images.

    Raises:
        FileError: if it cannot be written.
    """
    try:
        with new_file(path) as temporary:
            sheet.save(temporary, format="PNG", optimize=True)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None


def _write(draw: ImageDraw.ImageDraw, text: str, box: tuple[int, int, int, int]) -> None:
    """Write in the middle of a box (left, top, width, height), in as many lines as the words need."""
    left, top, width, height = box
    font = ImageFont.load_default(FONT)
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if draw.textlength(longer, font) <= width - 2 * FRAME:
            lines[-1] = longer
        else:
            lines.append(word)
    middle = top + (height - (len(lines) - 1) * LINE) / 2
    for number, line in enumerate(lines):
        place = (left + width / 2, middle + number * LINE)
        draw.text(place, line, fill=INK, font=font, anchor="mm")
