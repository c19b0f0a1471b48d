"""The committed results of experiments: their pages say what their JSON says, and nothing is missing."""

import json
from pathlib import Path

import pytest

from mole.cli.experiment import EXPERIMENTS
from mole.experiments.results_folder import files_of, markdown_of

RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = [name for name in EXPERIMENTS if (RESULTS / f"{name}.json").is_file()]


@pytest.mark.parametrize("name", COMMITTED)
def test_a_page_is_made_from_its_json(name):
    result = json.loads((RESULTS / f"{name}.json").read_text())
    assert result["experiment"] == name
    assert (RESULTS / f"{name}.md").read_text() == markdown_of(name, EXPERIMENTS[name], result)


@pytest.mark.parametrize("name", COMMITTED)
def test_every_drawing_is_there(name):
    for file in files_of(RESULTS, name, EXPERIMENTS[name]):
        assert file.is_file(), file


def test_every_committed_result_is_of_an_experiment():
    assert {file.stem for file in RESULTS.glob("*.json")} <= set(EXPERIMENTS)
