"""Drawings and pictures: well formed, the same every time, and nothing but what they are."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from mole.audit.drawing import line_plot
from mole.audit.pictures import picture, save_sheet, stretched
from mole.errors import ShapeError

PNG = b"\x89PNG\r\n\x1a\n"
DRAWN = {
    "svg", "title", "desc", "defs", "clipPath", "g", "path", "rect", "circle", "line", "polyline", "use",
    "text", "tspan",
}  # fmt: skip


def draw(words: str = "words", *, name: str = "p") -> str:
    return line_plot(
        [1, 10, 100], [0.1, 0.5, 0.9], name=name, title=words, description=words, x_label=words,
        y_label=words, logarithmic=True,
    )  # fmt: skip


def test_a_drawing_is_well_formed_and_the_same_every_time():
    assert draw() == draw()
    tree = ElementTree.fromstring(draw("a < b & c"))
    assert tree.attrib["role"] == "img"
    assert tree[0].text == "a < b & c"
    assert not re.search(r"<style|<metadata|<!--|#0[14]0[25]0[36]|DejaVu|\d{4}-\d\d-\d\d", draw())
    assert len(draw()) < 10_000
    names = set(re.findall(r' id="([^"]*)"', draw(name="p")))
    assert names
    assert names.isdisjoint(re.findall(r' id="([^"]*)"', draw(name="q")))
    assert names == set(re.findall(r'(?:href="#|url\(#)([^")]*)', draw(name="p")))


def test_pictures_are_png_and_nothing_else_is_a_picture():
    assert picture("x", np.zeros((3, 4, 5))).png.startswith(PNG)
    assert picture("x", np.full((4, 5), np.nan)).png.startswith(PNG)
    assert stretched(np.ones((4, 4))).tolist() == np.full((4, 4), 0.5).tolist()
    with pytest.raises(ShapeError, match="1 or 3 channels"):
        picture("x", np.zeros((16, 4, 5)))


@pytest.mark.parametrize(
    "words",
    [
        "<script>alert(1)</script>",
        "' onload='alert(1)",
        '" onload="alert(1)',
        "<image href='https://example.invalid/x.png'/>",
        "<use xlink:href='https://example.invalid/x.svg#a'/>",
        "</title></svg><img src=x onerror=alert(1)>",
        "<style>@import 'x'</style>",
    ],
)
def test_hostile_words_do_not_become_a_part_of_a_drawing(words):
    """It goes into the page as it is, so nothing in it may run, load or lead anywhere."""
    tree = ElementTree.fromstring(draw(words))
    assert {element.tag.split("}")[-1] for element in tree.iter()} <= DRAWN
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert not name.endswith("href") or value.startswith("#")
            assert "url(" not in value.replace("url(#", "")
    assert words in "".join(tree.itertext())


def test_a_sheet_shows_every_picture_in_a_frame(tmp_path):
    black, white = np.zeros((4, 5)), np.ones((4, 5))
    save_sheet(tmp_path / "sheet.png", [[black, white, black], [white, black, white]])
    with Image.open(tmp_path / "sheet.png") as sheet:
        pixels = np.asarray(sheet)
    assert pixels.shape == (2 * 6 * 3, 3 * 7 * 3)
    assert (pixels == 0).sum() == 3 * black.size * 9
    assert set(np.unique(pixels)) == {0, 255}
    assert (pixels[:3] == 255).all()
