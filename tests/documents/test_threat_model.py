"""docs/threat-model.md says what the attacks measured, and the README says the same."""

import json
from pathlib import Path

import pytest

from mole.attacks import ATTACKS

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "threat-model.md").read_text()
RESULT = json.loads((ROOT / "benchmarks" / "results" / "attacks.json").read_text())
SETTINGS = {(setting["core"], setting["kappa"]): setting["attacks"] for setting in RESULT["settings"]}
COLUMNS = (("orthogonal", 1), ("gaussian", 1), ("whitened", 1), ("whitened", 48))


def cell(measured: dict) -> str:
    """Share of images picked out, or of neighbours told right; bold where images came back."""
    if measured["status"] in ("not applicable", "not tried"):
        return "-"
    if "reidentified" in measured:
        share = f"{100 * measured['reidentified']:.0f} %"
        return f"**{share}**" if measured["status"] == "succeeded" else share
    if "neighbours" in measured:
        return f"{100 * measured['neighbours']:.0f} % of neighbours"
    return "nothing"


def row(attack) -> str:
    cells = [cell(SETTINGS[column][attack.name]) for column in COLUMNS]
    seconds = SETTINGS["whitened", 1][attack.name]["seconds"]
    taken = "-" if seconds is None else f"{seconds:.1f} s"
    return f"| {attack.title} | {attack.attacker} | {' | '.join(cells)} | {taken} |"


# What their attackers have besides, labels or a second delivery say, this benchmark does not give them.
WITH_MORE = ("moment-matching", "overlap", "cross-delivery", "membership", "blank-images")
HIGHER = json.loads((ROOT / "benchmarks" / "results" / "moment_matching.json").read_text())["settings"]
PICKED = {(one["q"], one["n"], one["tried"]): one["picked out"] for one in HIGHER}


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_the_table_is_the_benchmarks(attack):
    if attack.name in WITH_MORE:
        assert f"`{attack.name}`" in DOCUMENT
    else:
        assert row(attack) in DOCUMENT


def test_the_table_of_higher_moments_is_the_benchmarks():
    for q, n, what in PICKED:
        if what == "with labels":
            shares = [f"{100 * PICKED[q, n, which]:.1f} %" for which in ("without labels", what)]
            assert f"| {q} | {n:,} | {n / q:.0f} | {' | '.join(shares)} |" in DOCUMENT


def test_the_words_about_higher_moments_are_the_benchmarks():
    words = " ".join(DOCUMENT.split())
    last = {
        what: f"{100 * share:.1f} %" for (q, n, what), share in PICKED.items() if (q, n) == (256, 30_000)
    }
    for sentence in (
        f"labels alone pick out {last['labels alone']}, and shuffled labels",
        f"shuffled labels {last['labels alone, shuffled']}.",
        f"the labels shuffled it is {last['labels shuffled']}.",
        f"Fashion-MNIST as public images it is {last['public images of another kind']}.",
    ):
        assert sentence in words, sentence


FEW = json.loads((ROOT / "benchmarks" / "results" / "few_images.json").read_text())["rows"]


def test_the_table_of_few_images_is_the_benchmarks():
    whitened = [one for one in FEW if one["shrinkage"] is not None]
    assert len(whitened) >= 5
    for one in whitened:
        shown = [
            f"{one[which]['best component']:.2f} / {one[which]['mean of ten components']:.2f}"
            for which in ("delivered images", "later images")
        ]
        start = (
            f"| {one['delivered']:,} | {one['learned from']} | {one['images']:,} | {one['shrinkage']:.4f} |"
        )
        assert f"{start} {one['condition']:.0f} | {' | '.join(shown)} |" in DOCUMENT


def test_few_images_hide_more_than_none():
    for one in FEW:
        (bare,) = (o for o in FEW if o["delivered"] == one["delivered"] and o["shrinkage"] is None)
        if one["shrinkage"] is not None:
            for which in ("delivered images", "later images"):
                assert one[which]["mean of ten components"] < 0.5 * bare[which]["mean of ten components"]
                assert one[which]["neighbours"] < 0.5 * bare[which]["neighbours"]
            assert one["error of later images, int8"] < 0.05
            assert one["error of later images, float32"] < 1e-5


def test_higher_moments_find_what_they_should_and_nothing_where_there_is_nothing():
    large = {what: share for (q, n, what), share in PICKED.items() if (q, n) == (256, 30_000)}
    assert large["with labels"] >= 0.35
    assert large["without labels"] >= 0.05
    assert large["labels alone, shuffled"] <= 0.01
    assert large["labels shuffled"] <= 0.01
    assert large["public images of another kind"] <= 0.01


def test_the_targets_are_met_by_the_committed_results():
    for (core, kappa), attacks in SETTINGS.items():
        fingerprint = attacks["channel-fingerprint"]
        assert fingerprint["channels"] == 1, (core, kappa)
        assert fingerprint["rmse"] < 1e-2
        assert fingerprint["seconds"] < 30
        assert attacks["unknown-kernels"]["psnr"] > 40
        assert attacks["known-image"]["rmse"] < 1e-3
        assert attacks["brute-force-core"]["status"] == "failed"
    for core in ("orthogonal", "gaussian"):
        components = SETTINGS[core, 1]["pca-matching"]["components"]
        assert sum(value >= 0.8 for value in components[:10]) >= 6
    for kappa in (1, 3):
        assert max(SETTINGS["whitened", kappa]["pca-matching"]["components"][:10]) < 0.1


def test_the_words_are_the_benchmarks():
    words = " ".join(DOCUMENT.split())
    best_map = SETTINGS["whitened", 1]["feature-view"]["best_map"]
    blocks = SETTINGS["whitened", 48]["block-statistics"]["reidentified"]
    components = SETTINGS["orthogonal", 1]["pca-matching"]["components"]
    assert min(components[:10]) >= 0.8
    for sentence in (
        "all ten strongest components",
        f"{100 * blocks:.0f} of 100 images can be picked out",
        f"correlates {best_map:.2f} with the grey image",
        f"{RESULT['private']:,} CIFAR-10 images",
    ):
        assert sentence in words, sentence


def test_the_readme_says_the_same():
    readme = " ".join((ROOT / "README.md").read_text().split())
    limits = readme[readme.index("## Limits") : readme.index("## Protected deliveries")]
    for words in ("curious developer", "one known image", "whitened", "kappa", "docs/threat-model.md"):
        assert words in limits.lower()
