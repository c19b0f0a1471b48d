"""The paper's figures: what they draw is what they were given, well formed, and the same every time."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from mole.audit.paper_figures import (
    kappa_against_ssim,
    line_plot,
    off_by,
    photograph,
    sigma_against_recovered,
    with_new_cores,
)
from mole.errors import ParameterError
from mole.scheme.morphing import orthogonal_core

DRAWN = {
    "svg", "title", "desc", "defs", "clipPath", "g", "path", "rect", "circle", "line", "polyline", "use",
    "text", "tspan",
}  # fmt: skip


def test_a_larger_core_hides_more(rng):
    plot = kappa_against_ssim(with_new_cores(rng), photograph(48))
    likeness = [row[2] for row in plot.rows]
    assert plot.rows[-1][:2] == (48 * 48 * 3, 1)
    assert likeness[-1] > 0.99  # a core of one number is brightness, or a negative
    assert max(likeness[:4]) < 0.1
    assert len(plot.pictures) == len(plot.rows) + 1


def test_a_morphing_that_does_nothing_is_seen():
    plot = kappa_against_ssim(lambda image, kappa: image, photograph(32), kappas=(1, 3))
    assert [row[2] for row in plot.rows] == [1, 1]


def test_a_matrix_that_is_further_off_recovers_less(rng):
    plot = sigma_against_recovered(photograph(48), rng)
    likeness = [row[1] for row in plot.rows]
    assert likeness == sorted(likeness, reverse=True)
    assert likeness[0] > 0.9
    assert likeness[-1] < 0.1


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0])
def test_off_by_sigma_is_what_a_real_matrix_does(rng, sigma):
    """The oracle: matrices as in the proof of Lemma 2, M^-1 and G on a sphere, sigma radii apart."""
    photo = photograph(12)
    size = photo.size
    core = orthogonal_core(rng.standard_normal((size, size)))
    inverse, other = core.inverse, rng.standard_normal((size, size))
    other -= inverse * (other * inverse).sum() / np.square(inverse).sum()
    other *= np.linalg.norm(inverse) / np.linalg.norm(other)
    cosine = 1 - sigma**2 / 2
    guess = cosine * inverse + np.sqrt(1 - cosine**2) * other
    assert np.linalg.norm(guess) == pytest.approx(np.linalg.norm(inverse))
    assert np.linalg.norm(guess - inverse) == pytest.approx(sigma * np.linalg.norm(inverse))
    slow = (photo.reshape(1, -1) @ core.matrix @ guess).reshape(photo.shape)
    for recovered in (slow, off_by(photo, sigma, rng)):
        error = np.linalg.norm(recovered - photo) / np.linalg.norm(photo)
        assert error == pytest.approx(sigma, rel=0.15)
        along = (recovered * photo).sum() / np.square(photo).sum()
        assert along == pytest.approx(cosine, abs=0.15)


def test_a_sigma_beyond_all_ignorance_is_refused(rng):
    with pytest.raises(ParameterError, match="further off"):
        off_by(photograph(8), 1.5, rng)


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
