"""Arrays as pictures: a PNG of what they hold, and nothing that is no picture."""

import numpy as np
import pytest
from PIL import Image

from mole.audit.pictures import picture, save_sheet, stretched
from mole.errors import ShapeError

PNG = b"\x89PNG\r\n\x1a\n"


def test_pictures_are_png_and_nothing_else_is_a_picture():
    assert picture("x", np.zeros((3, 4, 5))).png.startswith(PNG)
    assert picture("x", np.full((4, 5), np.nan)).png.startswith(PNG)
    assert stretched(np.ones((4, 4))).tolist() == np.full((4, 4), 0.5).tolist()
    with pytest.raises(ShapeError, match="1 or 3 channels"):
        picture("x", np.zeros((16, 4, 5)))


def test_a_sheet_shows_every_picture_in_a_frame(tmp_path):
    black, white = np.zeros((4, 5)), np.ones((4, 5))
    save_sheet(tmp_path / "sheet.png", [[black, white, black], [white, black, white]])
    with Image.open(tmp_path / "sheet.png") as sheet:
        pixels = np.asarray(sheet)
    assert pixels.shape == (2 * 6 * 3, 3 * 7 * 3)
    assert (pixels == 0).sum() == 3 * black.size * 9
    assert set(np.unique(pixels)) == {0, 255}
    assert (pixels[:3] == 255).all()
