"""Arrays as pictures: a PNG of what they hold, and nothing that is not a picture."""

import numpy as np
import pytest

from mole.audit.pictures import picture, stretched
from mole.errors import ShapeError

PNG = b"\x89PNG\r\n\x1a\n"


def test_pictures_are_png_and_nothing_else_is_a_picture():
    assert picture("x", np.zeros((3, 4, 5))).png.startswith(PNG)
    assert picture("x", np.full((4, 5), np.nan)).png.startswith(PNG)
    assert stretched(np.ones((4, 4))).tolist() == np.full((4, 4), 0.5).tolist()
    with pytest.raises(ShapeError, match="1 or 3 channels"):
        picture("x", np.zeros((16, 4, 5)))
