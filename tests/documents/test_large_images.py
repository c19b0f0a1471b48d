"""docs/large-images.md is true: its commands run as printed, and its numbers are the benchmarks'."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyrage
import pytest
from PIL import Image

from command import call
from light_passphrases import lighten
from mole.exchange.layer_files import load_first_layer
from mole.quantities import size_text
from mole.scheme import layer_sizes
from photos import write_photos

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "large-images.md").read_text()
WORDS = " ".join(GUIDE.split())  # wherever lines break
NARROW = 'embedding_size=8, hidden_sizes=[8], depths=[1], layer_type="basic", '


def blocks_of(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


@pytest.fixture
def place(tmp_path) -> Path:
    """What both have before they begin: photos of other sizes, some of them grey, and a narrow network."""
    write_photos(tmp_path / "photos", side=240, train=15, val=6)
    (tmp_path / "new-photos").mkdir()
    for index, file in enumerate(sorted((tmp_path / "photos" / "val").glob("*/*.png"))):
        with Image.open(file) as image:
            image.convert("L").resize((300, 250)).save(tmp_path / "new-photos" / f"{index}.jpg")
    Image.new("L", (500, 375), 90).save(tmp_path / "photos" / "train" / "rocket" / "grey.jpg")
    (network,) = blocks_of("python")
    assert "ResNetConfig(num_labels" in network
    narrow = network.replace("ResNetConfig(num_labels", f"ResNetConfig({NARROW}num_labels")
    (tmp_path / "networks.py").write_text(narrow)
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "developer.txt").write_text(str(identity))
    (tmp_path / "developer.txt").chmod(0o600)
    (tmp_path / "recipient.txt").write_text(str(identity.to_public()))
    (tmp_path / "passphrase.txt").write_text("a long passphrase of the provider's\n")
    (tmp_path / "passphrase.txt").chmod(0o600)
    return tmp_path


def test_the_steps_run_as_printed(place, monkeypatch):
    pytest.importorskip("transformers", reason="needs Hugging Face's transformers")
    monkeypatch.setattr(layer_sizes, "_physical_memory", lambda: 16e9)
    lighten(monkeypatch)
    recipient = (place / "recipient.txt").read_text()
    said = {}
    for line in "".join(blocks_of("sh")).splitlines():
        program, command, *arguments = shlex.split(line.replace("$(cat recipient.txt)", recipient))
        assert program == "mole"
        done = call(command, *arguments, cwd=place)
        assert done.returncode == 0, done.stderr
        said[command] = done
    assert [*said] == [
        "export-layer",
        "keygen",
        "deliver",
        "verify",
        "train",
        "morph",
        "predict",
        "recover",
    ]
    assert "needs a key with tiles" in said["export-layer"].stderr
    assert "tiles hide images from the eye only" in said["keygen"].stderr
    assert pq.read_table(place / "predictions.parquet").num_rows == 6
    layer = load_first_layer(place / "first-layer.safetensors")
    assert (layer.kernel, layer.stride, layer.output_shape[1:]) == ((7, 7), (2, 2), (112, 112))
    with np.load(place / "recovered.npz") as recovered:
        assert recovered["x_train"].shape == (16, 3, 224, 224)
        expected, other = (
            np.asarray(Image.open(place / "photos" / "val" / "chelsea" / name).resize((224, 224)), int)
            for name in ("015.png", "018.png")
        )
        first = recovered["x_val"][0].transpose(1, 2, 0)
        assert np.abs(first - expected).mean() < 8 < np.abs(first - other).mean()  # what 8 bits leave
    assert all(path.suffix == ".age" for path in (place / "delivery").rglob("*") if path.is_file())


def result(name: str) -> dict:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}"


def test_the_table_of_accuracies_is_the_benchmarks():
    measured = result("tiles_training")
    rows = []
    for arm, curve in measured["arms"].items():
        several = len(curve["accuracy"]) > 1
        points = zip(curve["mean"], curve["standard deviation"], strict=True)
        cells = (percent(mean) + f" ± {percent(spread)}" * several for mean, spread in points)
        rows.append(f"| {arm} | {' | '.join(cells)} |")
    assert "\n".join(rows) in GUIDE
    assert f"{measured['rows']['train']:,} photos" in WORDS
    assert f"{measured['rows']['test']:,} to be tested on" in WORDS


def test_what_is_said_of_the_curves_is_true():
    measured = result("tiles_training")
    frozen = measured["plain, first layer frozen against tiles"]
    assert frozen["bands meet after every epoch"]
    assert f"at most {percent(frozen['largest gap of means'])} points" in WORDS
    assert f"{percent(frozen['gap after the last epoch'])} after the last epoch" in WORDS
    learning = measured["plain against tiles"]["gap after the last epoch"]
    assert f"gives {percent(learning)} points more" in WORDS
    errors = [one["standard error of that gap"] for one in (frozen, measured["plain against tiles"])]
    assert f"two gaps are {percent(errors[0])} and {percent(errors[1])} points" in WORDS
    assert frozen["gap after the last epoch"] < 2 * errors[0]
    assert learning < 2 * errors[1]
    assert "so both may be chance" in WORDS
    small = measured["plain, first layer frozen against tiles, 8 bits"]["gap after the last epoch"]
    assert f"({percent(small)} with 8-bit values)" in WORDS
    assert f"standard deviation of {measured['seeds']} seeds" in WORDS
    for curve in (
        result("tiles_training_random_layer")["arms"]["tiles"],
        measured["arms"]["tiles, 8 bits"],
    ):
        assert f"{percent(curve['mean'][-1])} ± {percent(curve['standard deviation'][-1])}" in WORDS
    arms = measured["arms"]
    assert all(len(arms[arm]["accuracy"]) == measured["seeds"] >= 3 for arm in [*arms][:6])
    assert arms["tiles, augmented layer left out"]["mean"][-1] < min(arms["tiles"]["accuracy"])[-1] - 0.1


def test_tiles_are_plain_photos_in_another_order():
    """Training on tiles is off by what a millionth in the photos does, and by far less than by an order."""
    measured, ordered = result("tiles_training"), "frozen, in the delivery's order"
    tiles, touched, order = (
        measured[pair]
        for pair in (
            f"{ordered} against tiles",
            f"{ordered} against {ordered}, off by a millionth",
            f"plain, first layer frozen against {ordered}",
        )
    )
    for loss, chance, other in zip(
        *(pair["losses apart"] for pair in (tiles, touched, order)), strict=True
    ):
        assert chance / 2 < loss < 2 * chance < other / 2
    first, second, *_, last = (f"{100 * loss:.2g} %" for loss in tiles["losses apart"])
    assert (
        f"{first} apart after the first epoch, {second} after the second and {last} after the last" in WORDS
    )
    by_chance = touched["losses apart"]
    first, second, last = (f"{100 * by_chance[epoch]:#.2g}" for epoch in (0, 1, -1))
    assert f"it is {first} %, {second} % and {last} %" in WORDS
    above, error = -tiles["more in the end"], tiles["standard error of that"]
    assert 0 < above < 2 * error
    told = f"end {percent(above)} points above the plain photos in their order"
    assert f"{told}, with a standard error of {percent(error)}" in WORDS
    assert f"moves one seed by {percent(touched['accuracies apart'][-1])} points" in WORDS
    left, error = order["more in the end"], order["standard error of that"]
    assert f"is {percent(left)} points, with a standard error of {percent(error)}" in WORDS
    assert left < 2 * error


def test_the_table_of_costs_is_the_benchmarks():
    measured = result("large_images")
    exact, narrow = measured["float32"], measured["int8"]
    rows = {
        "largest error of a photo's features": "error of features",
        "of the network's answers": "error of answers",
        "of its features, with another key's layer": "error of features, another key's layer",
        "bytes for each 8-bit value": "data_bytes_over_plain_8_bit_bytes",
        "time to deliver, times reading the photos": "deliver_s_over_reading_s",
        "time to verify, times reading the photos": "verify_s_over_reading_s",
    }
    table = "\n".join(
        f"| {words} | {exact[name]:.2g} | {narrow[name]:.2g} |" for words, name in rows.items()
    )
    assert table in GUIDE
    assert exact["verified"]
    assert narrow["verified"]
    assert exact["error of features"] <= 1e-5
    assert exact["error of features, another key's layer"] > 0.5
    assert f"{size_text(measured['augmented layer'])}, where blocks of rows" in WORDS
    assert f"need {size_text(measured['augmented layer in blocks of rows'])}" in WORDS
    assert f"{measured['forward']['seconds_over_plain']:.2f} times as long" in WORDS
