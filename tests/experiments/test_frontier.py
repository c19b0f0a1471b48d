"""`mole experiment frontier`, tiny, on the images of the package; its table and its drawing."""

import json
from pathlib import Path

import numpy as np
import pytest

from command import call, files_in
from experiments import frontier_result
from fronts import front_model
from mole.experiments.frontier_report import drawing, sizes_table, table
from mole.experiments.results_folder import save_drawing
from mole.sources.bundled import fashion_mnist

onnx = pytest.importorskip("onnx")
TINY = ["experiment", "frontier", "--preset", "tiny", "--seeds", 1]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Where the tiny experiment was run, with a front besides that copies pixels it knows."""
    folder = tmp_path_factory.mktemp("frontier")
    public = fashion_mnist()["x_public"].reshape(3000, -1) / 255.0
    _, _, directions = np.linalg.svd(public[:500] - public.mean(axis=0), full_matrices=False)
    weight = (directions[:12].T / 6).astype(np.float32)
    onnx.save(front_model(weight, shape=(1, 28, 28)), folder / "own.onnx")
    done = call(*TINY, "--front", "own.onnx", "--cache", "cache", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "stdout.txt").write_text(done.stdout)
    (folder / "stderr.txt").write_text(done.stderr)
    return folder


def test_every_front_is_measured_with_and_without_noise(place):
    result = json.loads((place / "results" / "frontier.json").read_text())
    (images,) = result["sets"]
    ways = {way["way"]: way for way in images["ways"]}
    assert list(ways) == ["pixels", "small network", "own.onnx"]
    for way in ways.values():
        plain, noisy = way["rows"]
        assert (plain["bits"], noisy["bits"]) == (None, 1.0)
        assert 1 / images["classes"] < noisy["accuracy"]["mean"] < plain["accuracy"]["mean"] + 0.05
        assert noisy["identified"]["mean"] <= noisy["identified_at_most"] + 0.01
    assert ways["pixels"]["train_images"] == 1000
    assert ways["small network"]["train_images"] == 800  # a fifth of them was public
    assert images["public_part_alone"]["images"] == 200
    assert images["validation_alone"] is None  # these images have no such split
    (decoder,) = images["decoder"]
    assert decoder["decoder_db"] < decoder["mean_image_db"] + 1


def test_the_result_is_printed_as_a_table_and_drawn(place):
    printed = (place / "stdout.txt").read_text()
    assert printed.strip() == table(json.loads((place / "results" / "frontier.json").read_text()))
    assert (place / "results" / "frontier.svg").read_text().count("own.onnx") == 1
    assert "own.onnx, 1 bit:" in (place / "stderr.txt").read_text()


def test_a_second_run_uses_what_was_kept(place):
    before = files_in(place / "cache")
    assert {name.partition("-")[0] for name in before if name.endswith(".onnx")} == {"front"}
    assert any(name.endswith(".json") for name in before)
    refused = call(*TINY, cwd=place)
    assert refused.returncode == 1
    assert "frontier.json exists already" in refused.stderr
    assert files_in(place / "cache") == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "a.npz"], "--data and --public go together"),
        (["--data", "a.npz", "--public", "b.npz"], "a.npz does not exist"),
        (["--front", "missing.onnx"], "missing.onnx cannot be read"),
        (["--seeds", "0"], "seeds"),
        (["--images", "a.npz"], "the option is called --data now"),
        (["--preset", "paper"], "frontier has no preset 'paper': it has 'cpu' and 'tiny'"),
    ],
)
def test_a_wrong_call_gets_one_sentence_and_writes_nothing(tmp_path, options, words):
    done = call("experiment", "frontier", *options, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert files_in(tmp_path) == set()


def test_what_is_not_installed_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("mole.experiments.compared_fronts.EfficientNet", None)
    done = call("experiment", "frontier", cwd=tmp_path)
    assert done.returncode == 1
    assert "pip install '.[experiments]'" in done.stderr
    assert files_in(tmp_path) == set()


def test_the_table_has_a_line_for_each_front():
    lines = table(frontier_result(), "auc", ["lungs"]).splitlines()
    assert lines[0] == "| images | front | features | train on | no noise | 1 bit |"
    assert lines[2:] == [
        "| lungs | pixels | 128 | 5,000 | 0.500 | 0.400 |",
        "| lungs | large | 128 | 5,000 | 0.900 | 0.800 |",
    ]
    assert sizes_table(frontier_result(), "cats").splitlines()[2:] == [
        "| 5,000 | 80.0 % | 70.0 % |",
        "| 5,000 | 90.0 % | 80.0 % |",
    ]


def test_the_drawing_shows_accuracy_of_ten_classes_and_areas_of_others(tmp_path):
    save_drawing(drawing(frontier_result()), tmp_path / "drawing.svg")
    again = tmp_path / "again.svg"
    save_drawing(drawing(frontier_result()), again)
    assert (tmp_path / "drawing.svg").read_bytes() == again.read_bytes()
