"""docs/paper-vs-measured.md is what its generator makes of the committed results, claim by claim."""

import json
import shutil

import pytest

import paper_results
import paper_vs_measured
from mole.analysis import PRESETS

TEXT = paper_vs_measured.DOCUMENT.read_text()
CLAIMS = [claim for claims in paper_vs_measured.PARTS.values() for claim in claims()]
# What the paper prints, from its abstract to its appendix.
PUBLISHED = (
    "9 %", "5.12 %", "10,000 times", "421,000 times", "7.9e-90", "2.9e-30", "2 hours", "62.8 %", "87.2 %",
    "87.4 %", "15.8 %", "55.9 %", "56.4 %", "2.01 %", "3072^2", "2^-9,000,000", "0.5", "2^-6,000,000",
    "2^-7,500,000,000", "3,072", "10 times", "about 1 %", "0.05 times", "0.09 times", "2.9e-39",
    "0.628 times", "64 times",
)  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A copy of the results, to be changed."""
    for folder in paper_results.FOLDERS:
        if (paper_results.ROOT / folder).is_dir():
            shutil.copytree(
                paper_results.ROOT / folder, tmp_path / folder,
                ignore=lambda _, names: [name for name in names if not name.endswith(".json")],
            )  # fmt: skip
    monkeypatch.setattr(paper_results, "ROOT", tmp_path)
    return tmp_path


def test_the_document_is_made_from_the_results():
    assert paper_vs_measured.document() == TEXT, "run: python tools/paper_vs_measured.py"


@pytest.mark.parametrize("number", PUBLISHED)
def test_every_number_that_the_paper_prints_is_a_claim(number):
    assert number in {claim.published for claim in CLAIMS}


def test_every_figure_of_the_analysis_that_is_published_is_a_claim():
    printed = {claim.published for claim in CLAIMS}
    for preset in PRESETS.values():
        for figure in preset.figures():
            if figure.published is not None:
                assert {figure.words("published"), f"about {figure.words('published')}"} & printed


def test_every_claim_has_its_cells():
    for claim in CLAIMS:
        assert claim.where
        assert claim.what
        assert "|" not in "".join(claim)
        assert claim.measured != paper_results.NOTHING or claim.formula != paper_results.NOTHING


def changed(folder, name: str, change) -> None:
    path = folder / name
    read = json.loads(path.read_text())
    change(read)
    path.write_text(json.dumps(read))


def test_another_result_makes_another_document(elsewhere):
    assert paper_vs_measured.document() == TEXT

    def slower(read: dict) -> None:
        for row in read["results"]:
            row["times_plain"] = 9.87

    changed(elsewhere, "benchmarks/results/networks.json", slower)
    assert "inference 9.87 times plain" in paper_vs_measured.document()
    assert "9.87" not in TEXT


def test_table_2_is_filled_in_once_it_is_there(elsewhere):
    (elsewhere / "results").mkdir(exist_ok=True)
    rows = [
        {"data": data, "setting": setting, "arm": arm, "accuracy": {"mean": mean, "sd": 0.01}}
        for data in ("cifar10", "cifar100")
        for arm, setting, mean in (
            ("plain", None, 0.7101), ("augmented", "the same images", 0.1),
            ("augmented", "other images", 0.7202),
            ("without", None, 0.2303),
        )
    ]  # fmt: skip
    pairs = [
        {"data": row["data"], "setting": row["setting"], "arm": row["arm"], "measure": "accuracy",
         "difference": 0.7101 - row["accuracy"]["mean"], "standard_error": 0.005}
        for row in rows if row["arm"] != "plain"
    ]  # fmt: skip
    result = {"preset": "cpu", "rows": rows, "pairs": pairs}
    (elsewhere / "results" / "table2.json").write_text(json.dumps(result))
    page = paper_vs_measured.document()
    for cell in ("| 71.0 % +- 1.0 |", "| 72.0 % +- 1.0 |", "| 23.0 % +- 1.0 |"):
        assert page.count(cell) == 2
    assert "CIFAR-10: +1.0 points, standard error 0.5" in page
    (elsewhere / "results" / "table2.json").unlink()
    assert paper_vs_measured.document().count(paper_results.NOT_YET) >= 7
