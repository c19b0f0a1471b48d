"""What docs/threat-model.md says about tiles is what benchmarks/tiles_attacks.py measured."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURED = json.loads((ROOT / "benchmarks" / "results" / "tiles_attacks.json").read_text())
CHAPTER = (ROOT / "docs" / "threat-model.md").read_text().split("\n## Tiles\n")[1].split("\n## ")[0]
NAMES = {"fashion-mnist": "Fashion-MNIST, 1x32x32", "cifar10": "CIFAR-10, 3x32x32"}
ATTACKS = (
    "block-statistics", "ica-small-cores", "moment-matching", "moment-matching, labels", "random rotation",
)  # fmt: skip


def told(found: dict) -> str:
    """A correlation, and a share of images."""
    return f"{found['correlation']:.2f} / {100 * found['reidentified']:.0f} %"


@pytest.mark.parametrize("row", MEASURED["results"], ids=lambda row: f"{row['images']}-{row['tile']}")
def test_a_row_of_the_table(row):
    cells = [NAMES[row["images"]], row["tile"], row["q"], row["kappa"], row["core"]]
    cells += [told(row[attack]) for attack in ATTACKS]
    cells += [row["known-pairs"]["counted"], row["known-pairs"]["enough"]]
    assert f"| {' | '.join(map(str, cells))} |" in CHAPTER.splitlines()


def test_the_table_has_no_other_rows():
    lines = [line for line in CHAPTER.splitlines() if line.startswith("| ")]
    assert len(lines) == 1 + len(MEASURED["results"])


@pytest.mark.parametrize("row", MEASURED["large"], ids=lambda row: row["core"])
def test_large_images(row):
    words = " ".join(CHAPTER.split())
    alone, all_over = (
        100 * row[which]["reidentified"] for which in ("middle alone", "crops from all over")
    )
    assert f"{row['core']} core: {alone:.0f} % by their middles alone, {all_over:.0f} % by" in words


def test_a_random_rotation_gives_next_to_nothing_but_where_tiles_are_tiny():
    found = {row["tile"]: row["random rotation"]["reidentified"] for row in MEASURED["results"]}
    assert found[8] < 0.05
    assert min(row["block-statistics"]["reidentified"] for row in MEASURED["results"]) > 0.9
