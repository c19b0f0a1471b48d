"""The paper's figures and audit.json: what they draw and write is what they were given."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from audit_report import made_up_report
from mole.audit.paper_figures import (
    kappa_against_ssim,
    off_by,
    photograph,
    sigma_against_recovered,
    with_new_cores,
)
from mole.audit.pictures import line_plot, picture, stretched
from mole.audit.write import to_json
from mole.errors import ParameterError, ShapeError
from mole.scheme.cores import orthogonal_core

PNG = b"\x89PNG\r\n\x1a\n"


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


def test_a_drawing_is_well_formed_and_the_same_every_time():
    def draw(name: str = "p") -> str:
        return line_plot(
            [1, 10, 100], [0.1, 0.5, 0.9], name=name, title="a < b & c", description="d", x_label="x",
            y_label="y", logarithmic=True,
        )  # fmt: skip

    assert draw() == draw()
    tree = ElementTree.fromstring(draw())
    assert tree.attrib["role"] == "img"
    assert tree[0].text == "a < b & c"
    assert not re.search(r"<style|<metadata|<!--|#0[14]0[25]0[36]|DejaVu|\d{4}-\d\d-\d\d", draw())
    assert len(draw()) < 10_000
    names = set(re.findall(r' id="([^"]*)"', draw("p")))
    assert names
    assert names.isdisjoint(re.findall(r' id="([^"]*)"', draw("q")))
    assert names == set(re.findall(r'(?:href="#|url\(#)([^")]*)', draw("p")))


def test_pictures_are_png_and_nothing_else_is_a_picture():
    assert picture("x", np.zeros((3, 4, 5))).png.startswith(PNG)
    assert picture("x", np.full((4, 5), np.nan)).png.startswith(PNG)
    assert stretched(np.ones((4, 4))).tolist() == np.full((4, 4), 0.5).tolist()
    with pytest.raises(ShapeError, match="1 or 3 channels"):
        picture("x", np.zeros((16, 4, 5)))


def test_json_holds_everything_but_pictures():
    report = made_up_report()
    told = json.loads(to_json(report))
    assert (told["format"], told["version"]) == ("mole-audit", 1)
    assert [attack["name"] for attack in told["attacks"]] == [attack.name for attack in report.attacks]
    assert told["attacks"][4]["score"]["rmse"] == 1.6e-05
    assert told["attacks"][4]["pictures"][0][0] == "Original"
    assert told["plots"][0]["rows"] == [list(row) for row in report.plots[0].rows]
    assert told["costs"][2]["measured"] is None
    assert "svg" not in to_json(report)
    assert "PNG" not in to_json(report)


def test_json_does_not_depend_on_the_order_of_entries_or_the_kind_of_number():
    report = made_up_report()
    one = replace(report.attacks[0], facts={"a": 1, "b": np.float32(0.1), "c": np.nan, "d": [np.int64(3)]})
    other = replace(one, facts={"d": (3,), "c": np.inf, "b": 0.1, "a": np.int8(1)})
    texts = [to_json(replace(report, attacks=(attack,))) for attack in (one, other)]
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["attacks"][0]["facts"] == {"a": 1, "b": 0.1, "c": None, "d": [3]}


def test_json_refuses_bytes():
    report = made_up_report()
    with pytest.raises(TypeError, match="no place"):
        to_json(replace(report, subject={"x": b"1"}))


def test_a_missing_extra_is_named():
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import mole\ntry:\n    import mole.audit\nexcept mole.MoleError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "mole.audit needs more packages: pip install 'morphed-learning[audit]'"
