"""Two tables of docs/threat-model.md say what was measured: outsiders, and layers that copy pixels."""

import importlib
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from mole.provider.copying import ALONE, TOGETHER

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "threat-model.md").read_text()
WORDS = " ".join(DOCUMENT.split())
OUTSIDER = json.loads((ROOT / "benchmarks" / "results" / "outsider.json").read_text())
COPYING = json.loads((ROOT / "benchmarks" / "results" / "copying.json").read_text())["results"]
CORES = ("orthogonal", "gaussian", "whitened")


def measured(attack: str, figure: str, core: str, **tried) -> list[float]:
    """One figure for each key."""
    (found,) = [
        one
        for one in OUTSIDER["results"]
        if (one["attack"], one["core"], one["tried"]) == (attack, core, tried)
    ]
    return found[figure]


def control(attack: str, figure: str, **tried) -> list[float]:
    """The same of all keys and cores."""
    return [value for core in CORES for value in measured(attack, figure, core, **tried)]


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def two_digits(value: float) -> str:
    return f"{value:.2f}"


def whole(value: float) -> str:
    return f"{value:.0f}"


def span(values: list[float], told) -> str:
    least, most = told(min(values)), told(max(values))
    return least if least == most else f"{least.removesuffix(' %')} to {most}"


class Row(NamedTuple):
    """A row of the table: its words, what was tried, and the control where nothing should be found."""

    name: str
    has: str
    counted: str
    told: Callable[[float], str]
    figure: str
    tried: dict
    nothing: dict
    nothing_figure: str = ""

    @property
    def line(self) -> str:
        attack = self.name.split("`")[1]
        keys = [measured(attack, self.figure, core, **self.tried) for core in CORES]
        cells = [self.told(statistics.median(values)) for values in keys]
        cells.append(span(control(attack, self.nothing_figure or self.figure, **self.nothing), self.told))
        return f"| {' | '.join([self.name, self.has, self.counted, *cells])} |"


HALF, WHOLE, BLOCKS = ({"kappa": kappa, "shared": shared} for kappa, shared in ((1, 98), (1, 196), (4, 13)))
BLANK, UNSCALED = ({"pixels": pixels, "blank": 20} for pixels in ("normalised", "0 to 1"))
PICKED, SUM = "others picked out, among 256", "correlation with the weighted sum"


def asked(by: str, *, labels: bool, more: str) -> Row:
    tried = {"by": by, "labels": labels, "delivered": True}
    has, counted = f"500 delivered images and 500 others{more}", "delivered ones ranked first"
    nothing = tried | {"delivered": False}
    return Row(f"`membership` by {by}", has, counted, percent, "ranked before", tried, nothing)


ROWS = [
    Row("`overlap`", "1,000 images, 98 (q / 2) of them delivered", "delivered ones found",
        percent, "found", HALF, HALF | {"shared": 0}),
    Row("`overlap`", "the same", PICKED, percent, "others picked out", HALF, HALF | {"shared": 0}),
    Row("`overlap`", "196 (q) of them delivered", PICKED,
        percent, "others picked out", WHOLE, WHOLE | {"shared": 0}),
    Row("`overlap`", "13 (q / kappa) of them delivered, kappa = 4, q = 49", PICKED,
        percent, "others picked out", BLOCKS, BLOCKS | {"shared": 0}),
    Row("`cross-delivery`", "a delivery in 8 bits with 500 of the 1,000 rows", "rows linked",
        percent, "found", {"same_key": True}, {"same_key": False}),
    asked("lengths", labels=False, more=""),
    asked("rotation", labels=False, more=", no labels"),
    asked("rotation", labels=True, more=", labels"),
    Row("`blank-images`", "20 of 3,000 images are black", "correlation with brightness",
        two_digits, "brightness", BLANK, BLANK | {"blank": 0}),
    Row("`blank-images`", "the same", SUM, two_digits, "weighted sum", BLANK, BLANK, "of another row"),
    Row("`blank-images`", "the same, and black is 0", SUM,
        two_digits, "weighted sum", UNSCALED, UNSCALED | {"blank": 0}),
    Row("`blank-images`", "a black border of 52 pixels", "directions without variation",
        whole, "without variation", {"border": True}, {"border": False}),
]  # fmt: skip


def copying_row(one: dict) -> str:
    two = "-" if one["two"] is None else two_digits(one["two"])
    refused = (
        f"{one['refused']} of {one['layers']}" if one["layers"] > 1 else "yes" if one["refused"] else "no"
    )
    return f"| {one['layer']} | {two_digits(one['one kernel'])} | {two} | {refused} |"


def table_under(heading: str) -> list[str]:
    """The rows of the table of a chapter, without its head."""
    chapter = DOCUMENT[DOCUMENT.index(f"## {heading}") :].split("\n## ")[0]
    return [line for line in chapter.splitlines() if line.startswith("|")][2:]


def test_the_table_of_outsiders_is_the_benchmarks():
    assert table_under("What an outsider may also have") == [row.line for row in ROWS]


def test_the_table_of_copying_layers_is_the_benchmarks():
    assert table_under("Layers that copy pixels") == [copying_row(one) for one in COPYING]


def test_the_words_about_outsiders_are_the_benchmarks():
    linked = control("cross-delivery", "found", same_key=True)
    wrong = control("cross-delivery", "wrong", same_key=True)
    tried = {"by": "rotation", "delivered": True}
    without, with_labels = (
        span(measured("membership", "ranked before", "whitened", labels=labels, **tried), percent)
        for labels in (False, True)
    )
    both, missed = OUTSIDER["in both"], round(OUTSIDER["in both"] * (1 - min(linked)))
    exact, rough = (
        statistics.median(measured("overlap", "error of others", "orthogonal", **tried))
        for tried in (WHOLE, HALF)
    )
    for sentence in (
        f"of {exact:.4f} standard deviations with q images, and of {rough:.2f} with q / 2",
        f"At most {missed} of {both} rows was missed, and at most {max(wrong):.0f} were linked wrongly",
        f"({without} under a whitened core, n = {OUTSIDER['delivered']:,} and q = 49)",
        f"with labels it is {with_labels}",
    ):
        assert sentence in WORDS, sentence


@pytest.mark.parametrize("core", ["gaussian", "whitened"])
def test_no_other_core_keeps_lengths(core):
    for tried in (HALF, WHOLE, BLOCKS):
        assert not any(measured("overlap", "found", core, **tried))


def test_where_there_is_nothing_nothing_is_found():
    for kappa in (1, 4):
        assert not any(control("overlap", "wrong", kappa=kappa, shared=0))
    assert not any(control("cross-delivery", "wrong", same_key=False))
    assert not any(control("blank-images", "taken for blank", pixels="normalised", blank=0))
    for by, labels in (("lengths", False), ("rotation", False), ("rotation", True)):
        ranked = control("membership", "ranked before", by=by, labels=labels, delivered=False)
        assert 0.45 < min(ranked) <= max(ranked) < 0.55


def test_honest_layers_pass_and_planted_copies_do_not():
    for one in COPYING:
        if one["layer"].startswith("planted"):
            assert one["refused"], one
            assert one["one kernel"] >= ALONE or one["two"] >= TOGETHER
        elif "Conv1d" not in one["layer"]:
            assert not one["refused"], one
            assert one["one kernel"] < ALONE


@pytest.fixture
def benchmark(monkeypatch):
    """Imports a benchmark by its name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.mark.parametrize(
    ("attack", "tried"),
    [
        ("overlap", WHOLE),
        ("cross-delivery", {"same_key": True}),
        ("membership", {"by": "lengths", "labels": False, "delivered": True}),
        ("blank-images", {"border": True}),
    ],
)
@pytest.mark.parametrize("core", ["orthogonal", "whitened"])
def test_the_first_key_still_gives_the_outsider_as_much(benchmark, attack, tried, core):
    outsider = benchmark("outsider")
    (measure,) = [how for name, how, setting in outsider.SETTINGS if (name, setting) == (attack, tried)]
    for figure, value in measure(core, 0, **tried).items():
        assert value == pytest.approx(measured(attack, figure, core, **tried)[0], abs=0.02), figure


def test_filters_and_planted_copies_still_have_these_shares(benchmark):
    copying = benchmark("copying")
    committed = {one["layer"]: one for one in COPYING}
    for name, weight in (copying.filters() | copying.planted()).items():
        assert copying.measured(name, [copying.layer_of(weight)]) == pytest.approx(
            committed[name], abs=1e-3
        )
