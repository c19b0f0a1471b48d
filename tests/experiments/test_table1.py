"""`mole experiment table1`, tiny, on the images of the package."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mole
from command import call, files_in
from mole.experiments import table1_report
from mole.experiments.attacked_deliveries import random_layer
from mole.experiments.feature_transmission import Transmission

PEERS = Path(__file__).parents[2] / "benchmarks" / "results" / "peers.json"
CALL = ("experiment", "table1", "--preset", "tiny", "--seeds", 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("table1")
    done = call(*CALL, "--peers", PEERS, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def result(place) -> dict:
    return json.loads((place / "results/table1.json").read_text())


def rows_of(result: dict, method: str) -> list[dict]:
    return [row for row in result["rows"] if row["method"] == method]


def test_every_method_has_rows_and_the_developer_has_the_images(result):
    assert result["rows"][0]["method"] == "plain data"
    rows, tiles = rows_of(result, "MoLe")
    assert (rows["tile"], tiles["tile"]) == (None, 4)
    for row in (rows, tiles):
        assert row["attacks"]["developer"]["reidentified"] == 1
        assert row["attacks"]["thief"]["reidentified"] == 1
        assert "provider_ms" not in row  # the peers were measured on other images
    assert rows["provider_macs"] == 784**2
    assert tiles["provider_macs"] == 49 * 16**2


def test_noise_on_features_costs_quality_and_bits_come_from_a_formula(result):
    clean, noisy = rows_of(result, "features with noise")
    assert (clean["noise"], clean["bits"]) == (None, None)
    assert noisy["bits"] == pytest.approx(noisy["values"] / 2 * np.log2(1 + 1 / 4.0**2), rel=0.001)
    assert clean["nearest"] == clean["rebuilt"] == 1
    assert noisy["psnr"] < clean["psnr"] - 20


def test_nobody_is_picked_out_more_often_than_the_certificate_says(result):
    (protected,) = [row for row in rows_of(result, "protected") if row["bits"] is not None]
    deviation = (protected["at_most"] / protected["candidates"]) ** 0.5
    assert protected["nearest"]["high"] <= protected["at_most"] + 3 * deviation


def test_what_is_extrapolated_says_so(place, result):
    page = (place / "results/table1.md").read_text()
    for name in ("homomorphic encryption, TenSEAL", "secret sharing, CrypTen"):
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {name}")]
        assert line.count("*extrapolated*") == 2
        assert "none tried; it promises" in line
    (row,) = rows_of(result, "secret sharing, CrypTen")
    measured = json.loads(PEERS.read_text())["results"]["crypten"]
    seconds = measured["provider_s"] + measured["developer_s"]
    assert row["whole_network_s"] == pytest.approx(seconds * 313_725_952 / 1_769_472, rel=0.01)
    assert "2.9e-39" in page  # the paper's own table stands below


def test_every_number_of_the_page_is_in_the_json(place, result):
    page = (place / "results/table1.md").read_text()
    assert table1_report.report(result) in page
    plain = result["rows"][0]["accuracy"]["mean"]
    for row in result["rows"]:
        if "accuracy" in row:
            assert f"| {table1_report.name_of(row)} | {100 * row['accuracy']['mean']:.1f} % " in page
    worse = {
        **result,
        "rows": [
            {**result["rows"][0], "accuracy": {"mean": 0.9, "low": 0.9, "high": 0.9}},
            *result["rows"][1:],
        ],
    }
    assert table1_report.report(worse) != table1_report.report(result)
    assert plain != 0.9


def test_the_drawing_opens(place):
    with Image.open(place / "results/table1.png") as image:
        image.load()
        assert min(image.size) > 300


def test_it_goes_on_from_what_is_kept(place, result):
    done = call(*CALL, "--peers", PEERS, "--force", cwd=place)
    assert done.returncode == 0
    assert json.loads((place / "results/table1.json").read_text()) == result


def test_a_file_that_is_no_result_of_peers_is_refused(tmp_path):
    (tmp_path / "peers.json").write_text('{"results": {}}')
    done = call(*CALL, "--peers", "peers.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "peers.json is not a result of benchmarks/peers.py" in done.stderr
    assert files_in(tmp_path) == {"peers.json"}


def test_features_without_noise_are_undone_exactly_and_with_it_they_are_not():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(40, 1, 12, 12)).astype(np.float32)
    layer = random_layer((1, 12, 12), 16, seed=0)
    exact, noisy = (Transmission(layer, 1e3, noise).attacked(plain, None) for noise in (None, 1000.0))
    assert exact["rebuilt"] == exact["nearest"] == 1
    assert noisy["nearest"] < 0.5
    assert noisy["correlation"] < 0.5 < exact["correlation"]


def test_the_layer_of_an_attack_is_another_for_another_seed():
    first, same, other = (random_layer((1, 8, 8), 4, seed) for seed in (0, 0, 1))
    assert isinstance(first, mole.FirstLayer)
    assert np.array_equal(first.weight, same.weight)
    assert not np.array_equal(first.weight, other.weight)
