"""docs/protection.md has the figures of the committed results, and commands that exist."""

import json
import math
import re
import shlex

import pytest

import protection
from mole.cli.app import COMMANDS, load_command
from mole.protection.certificate import Certificate

TEXT = protection.DOCUMENT.read_text()
CALLS = re.findall(
    r"^mole .+$", "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)), re.MULTILINE
)
SETS = {one["images"]: one for one in protection.result("frontier")["sets"]}


def test_the_figures_are_those_of_the_results():
    assert protection.document() == TEXT, "run: python tools/protection.py"
    assert {name for name in re.findall(r"<!-- (\w+) -->\n", TEXT) if name != "end"} == set(
        protection.MAKERS
    )


def test_another_result_makes_another_document(tmp_path, monkeypatch):
    for name in ("frontier", "protect"):
        (tmp_path / f"{name}.json").write_text((protection.RESULTS / f"{name}.json").read_text())
    read = json.loads((tmp_path / "frontier.json").read_text())
    read["sets"][0]["ways"][-1]["rows"][3]["accuracy"]["mean"] = 0.9654
    (tmp_path / "frontier.json").write_text(json.dumps(read))
    monkeypatch.setattr(protection, "RESULTS", tmp_path)
    assert "96.5 %" in protection.document()
    assert "96.5 %" not in TEXT


def test_the_picture_shows_the_same_images():
    drawing = protection.PICTURE.read_text()
    for name, images in SETS.items():
        assert f"{name}, {images['ways'][-1]['train_images']:,} images" in drawing


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call.split()[:3]))
def test_a_command_has_the_options_that_the_page_gives_it(call):
    _, name, *rest = shlex.split(call)
    assert name in COMMANDS
    options = {option for part in load_command(name).params for option in part.opts}
    assert {word for word in rest if word.startswith("--")} <= options


def test_there_are_commands():
    names = {call.split()[1] for call in CALLS}
    assert {"front", "deliver", "train", "export-head", "calibrate", "predict", "audit"} <= names


def test_nobody_was_identified_more_often_than_the_certificate_says():
    """But for chance: where noise is limited, the best attacker comes up to the bound."""
    for images in SETS.values():
        for way in images["ways"]:
            for one in way["rows"]:
                if one["bits"] is not None:
                    bound = Certificate.for_bits(one["bits"], features=way["features"]).identification(1000)
                    chance = 4 * math.sqrt(bound / one["identifications_tried"])
                    assert one["identified"]["mean"] <= bound + chance
                    assert one["identified_at_most"] == pytest.approx(bound, abs=1e-3)


def test_it_was_measured_on_whole_data_sets_and_a_bit_rebuilds_nothing():
    assert protection.result("frontier")["draws"] == 10
    assert "means of ten draws" in TEXT
    delivered = {name: images["ways"][-1]["train_images"] for name, images in SETS.items()}
    assert delivered == {"CIFAR-10": 50_000, "PathMNIST": 9_000, "PneumoniaMNIST": 4_708}
    for images in SETS.values():
        at_one = next(one for one in images["decoder"] if one["bits"] == 1)
        assert at_one["decoder_db"] <= at_one["mean_image_db"] + 0.2


def test_with_many_images_the_noise_costs_what_the_page_says():
    """The noise itself costs little; what is lost besides is what class means cannot tell."""
    rows = {name: {row["bits"]: row for row in images["ways"][-1]["rows"]} for name, images in SETS.items()}

    def mean(name: str, bits: float | None, measure: str) -> float:
        return rows[name][bits][measure]["mean"]

    for bits, lost in ((8, 0.045), (1, 0.07)):
        assert mean("CIFAR-10", bits, "accuracy") >= mean("CIFAR-10", None, "accuracy") - lost
    assert mean("CIFAR-10", 1, "identified") <= 0.02
    assert mean("CIFAR-10", 1, "accuracy") >= mean("CIFAR-10", None, "nearest_mean_accuracy") - 0.015
    assert mean("PneumoniaMNIST", 1, "auc") >= 0.89
    assert mean("PathMNIST", 1, "auc") >= 0.88
    without_noise = mean("PneumoniaMNIST", None, "adapted_accuracy")
    assert mean("PneumoniaMNIST", 1, "adapted_accuracy") >= without_noise - 0.04


def test_clip_and_noise_take_next_to_no_time_beside_the_front():
    for front in protection.result("protect")["fronts"]:
        assert front["share_of_the_front_alone"] >= 0.9
