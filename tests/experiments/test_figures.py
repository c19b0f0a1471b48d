"""The paper's figures and ours, tiny, from the command to the files; and what they show, by oracles."""

import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mole
from command import call, files_in
from mole.cli.experiment import EXPERIMENTS
from mole.experiments import explanations, figure_kappa, figure_sigma
from mole.experiments.results_folder import PICTURES, markdown_of
from mole.scheme.layer_matrix import layer_matrix

FIGURES = ("figure-kappa", "figure-sigma", "figure-unroll", "figure-diagonal", "figure-attacks")
SEEDED = ("figure-kappa", "figure-attacks")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Where every figure was made."""
    folder = tmp_path_factory.mktemp("figures")
    for name in FIGURES:
        seeds = ["--seeds", 1] if name in SEEDED else []
        done = call("experiment", name, "--preset", "tiny", *seeds, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == EXPERIMENTS[name].report(result_in(folder, name))
    return folder


def result_in(folder: Path, name: str) -> dict:
    return json.loads((folder / "results" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_opens_as_png_and_svg_and_its_page_says_what_the_json_says(place, name):
    result = result_in(place, name)
    with Image.open(place / f"results/{name}.png") as image:
        image.load()
        assert min(image.size) > 300
        grey = np.asarray(image.convert("L"))
    assert grey.min() < 100  # something is drawn
    assert grey.max() > 250
    drawing = ET.parse(place / f"results/{name}.svg").getroot()
    assert drawing.tag.endswith("svg")
    assert (place / f"results/{name}.md").read_text() == markdown_of(name, EXPERIMENTS[name], result)
    assert EXPERIMENTS[name].drawings[""].alt in (place / f"results/{name}.md").read_text()


def test_nothing_else_is_written(place):
    wanted = {f"results/{name}.{kind}" for name in FIGURES for kind in (*PICTURES, "md", "json")}
    wanted.add("results")
    assert {name for name in files_in(place) if not name.startswith("results/cache")} == wanted


def test_every_kappa_that_cuts_a_sample_is_there_and_the_eye_sees_more_of_small_blocks(place):
    rows = result_in(place, "figure-kappa")["rows"]
    assert [row["kappa"] for row in rows] == [k for k in range(1, 385) if 768 % k == 0]
    assert all(row["kappa"] * row["core_side"] == 3 * 16 * 16 for row in rows)
    uniform = [row["uniform(0, 1)"]["mean"] for row in rows]
    assert uniform[0] < 0.2
    assert uniform[-1] > 0.8


def test_likeness_is_one_for_the_same_picture_and_about_nothing_for_noise():
    cat = figure_kappa.photograph("chelsea", 32)
    morphed = mole.morph(cat[np.newaxis], mole.MorphKey.generate((3, 32, 32), kappa=3))[0]
    assert figure_kappa.likeness(cat, 2 * cat - 5) == pytest.approx(1)
    assert figure_kappa.likeness(cat, morphed) < 0.2


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0])
def test_a_recovered_image_is_what_a_real_guess_of_the_matrix_gives(sigma):
    """A guess at distance sigma from the inverse matrix, both of length 1, against the function."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(200, 1, 8, 8))
    key = mole.MorphKey.generate((1, 8, 8), insecure_seed=bytes(32))
    morphed = mole.morph(plain, key).reshape(200, 64)
    inverse = key.morphing.core.inverse / np.linalg.norm(key.morphing.core.inverse)
    aside = rng.normal(size=inverse.shape)
    aside -= (aside * inverse).sum() * inverse
    angle = 2 * math.asin(sigma / 2)
    guess = math.cos(angle) * inverse + math.sin(angle) * aside / np.linalg.norm(aside)
    assert np.linalg.norm(guess - inverse) == pytest.approx(sigma)
    by_guess = (morphed @ guess) * np.linalg.norm(key.morphing.core.inverse)
    ours = np.stack([figure_sigma.recovered(one, sigma, seed) for seed, one in enumerate(plain)])
    errors = [
        np.linalg.norm(found.reshape(200, 64) - plain.reshape(200, 64), axis=1)
        / np.linalg.norm(plain.reshape(200, 64), axis=1)
        for found in (by_guess, ours)
    ]
    assert errors[0].mean() == pytest.approx(sigma, rel=0.05)
    assert errors[1].mean() == pytest.approx(errors[0].mean(), rel=0.05)
    assert np.corrcoef(by_guess.ravel(), plain.ravel())[0, 1] == pytest.approx(
        np.corrcoef(ours.ravel(), plain.ravel())[0, 1], abs=0.03
    )


def test_the_cat_is_worse_the_larger_sigma_is(place):
    rows = result_in(place, "figure-sigma")["rows"]
    assert [row["sigma"] for row in rows] == [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
    for way in ("pixels", "normalised", "denoised"):
        psnr = [row[way]["psnr"] for row in rows]
        assert psnr == sorted(psnr, reverse=True)
    assert all(row["relative_error"] == pytest.approx(row["sigma"], rel=0.1) for row in rows)


def test_the_drawn_matrices_are_those_of_the_scheme(place):
    unrolled = result_in(place, "figure-unroll")
    sample, weights = np.array(unrolled["sample"]), np.array(unrolled["weight_at"])
    assert sample.reshape(-1).tolist() == unrolled["row_vector"] == list(range(1, 19))
    kernels = np.arange(1.0, 17).reshape(2, 2, 2, 2)
    layer = mole.FirstLayer.conv(kernels, None, input_shape=(2, 3, 3))
    assert weights.tolist() == layer_matrix(layer).tolist()
    for channel, y, x in np.ndindex(2, 2, 2):  # the convolution, by hand
        by_hand = (kernels[channel] * sample[:, y : y + 2, x : x + 2]).sum()
        assert unrolled["features"][4 * channel + 2 * y + x] == by_hand
    scaled = result_in(place, "figure-diagonal")
    assert np.array(scaled["matrix"]).tolist() == np.kron(np.eye(3), scaled["core"]).tolist()


def test_drawings_are_the_same_each_time(place):
    result = result_in(place, "figure-diagonal")
    done = call("experiment", "figure-diagonal", "--preset", "tiny", "--force", cwd=place)
    assert done.returncode == 0
    assert result_in(place, "figure-diagonal") == result
    first, again = (explanations.draw_diagonal(result) for _ in range(2))
    assert len(first.axes[0].texts) == len(again.axes[0].texts) > 40


def test_attackers_get_what_they_get_elsewhere(place):
    result = result_in(place, "figure-attacks")
    for row in (*result["kappa"], *result["tile"], *result["core"]):
        assert row["channel-fingerprint"]["reidentified"]["mean"] == 1  # the developer has all images
    (kappa,) = result["kappa"]
    assert kappa["block-statistics"]["reidentified"]["mean"] > 0.9
    assert result["core"][0]["block-statistics"] is None  # of one block
    one, seven = result["pairs"]
    assert (one["published"], one["counted"]) == (49, 49)
    assert (seven["published"], seven["counted"]) == (7, 1)
    for row in (one, seven):
        assert row["curve"][-1]["error"] < 0.05 < max(point["error"] for point in row["curve"]) or (
            row["counted"] == 1
        )
        assert row["with_layer"]["pairs"] == 1
        assert row["with_layer"]["error"] < 1e-4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["figure-sigma", "--seeds", 2], "--seeds means nothing for figure-sigma"),
        (["figure-kappa", "--preset", "paper"], "figure-kappa has no preset 'paper'"),
        (["figure-unroll", "--data", "a.npz"], "--data means nothing for figure-unroll"),
        (["table1", "--peers", "missing.json"], "missing.json"),
        (["table1", "--data", "a.npz"], "--data and --public go together"),
    ],
)
def test_a_wrong_call_gets_one_sentence_and_writes_nothing(tmp_path, options, words):
    done = call("experiment", *options, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert len(re.findall(r"\n", done.stderr)) == 1
    assert files_in(tmp_path) == set()
