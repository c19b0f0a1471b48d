"""Sheets of pictures: every picture at its place, in its colours, and words that stay in their boxes."""

import numpy as np
import pytest
from PIL import Image

from mole.errors import FileError
from mole.provider.picture_sheet import CAPTION, FRAME, HEADING, NARROWEST, draw_sheet, save_sheet

RED = np.stack([np.ones((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))])


def test_every_picture_stands_in_a_frame_of_paper():
    black, white = np.zeros((4, 4)), np.ones((4, 4))
    sheet = np.asarray(draw_sheet([[black, white, black], [white, black, white]]))
    side = 96 + 2 * FRAME
    assert sheet.shape == (2 * side, 3 * side, 3)
    assert (sheet == 0).all(axis=2).sum() == 3 * 96 * 96
    assert (sheet[:FRAME] == 255).all()


def test_colours_stay_and_smaller_pictures_are_enlarged():
    sheet = np.asarray(draw_sheet([[RED, np.zeros((2, 2))]]))
    left, right = np.hsplit(sheet, 2)
    assert (left == (255, 0, 0)).all(axis=2).sum() == (right == 0).all(axis=2).sum() == 96 * 96


def test_words_stand_beside_the_pictures_and_only_there():
    pictures = [[np.ones((28, 28))] * 2] * 2
    words = {
        "headings": ("your image", "rebuilt from features"),
        "captions": ("tried with another key", "x"),
    }
    sheet = np.asarray(draw_sheet(pictures, **words).convert("L"))
    cell = 84 + 2 * FRAME
    assert sheet.shape == (HEADING + 2 * cell, CAPTION + 2 * cell)
    assert (sheet[HEADING:, CAPTION:] == 255).all()
    assert (sheet[:HEADING, :CAPTION] == 255).all()
    for box in (sheet[:HEADING, CAPTION : CAPTION + cell], sheet[HEADING : HEADING + cell, :CAPTION]):
        assert (box < 128).any()
        assert (box[[0, -1]] == 255).all()  # not cut off above or below
        assert (box[:, [0, -1]] == 255).all()


def test_a_narrow_picture_leaves_room_for_its_heading():
    sheet = draw_sheet([[np.zeros((96, 4))]], headings=("feature map 1",))
    assert sheet.width == NARROWEST + 2 * FRAME


def test_only_its_owner_can_read_a_sheet(tmp_path):
    save_sheet(tmp_path / "sheet.png", draw_sheet([[RED]]))
    assert (tmp_path / "sheet.png").stat().st_mode & 0o777 == 0o600
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.format == "PNG"
    with pytest.raises(FileError, match="cannot be written"):
        save_sheet(tmp_path / "nowhere" / "sheet.png", draw_sheet([[RED]]))
