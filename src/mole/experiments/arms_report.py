"""Scores of arms as rows, as a table and as a drawing: means over seeds, and differences seed by seed."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mole.experiments.frontier_report import figure as shown
from mole.experiments.frontier_report import markdown

Row = dict[str, Any]
NAMES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "pathmnist": "PathMNIST",
    "pneumoniamnist": "PneumoniaMNIST",
}
IN_WORDS = {
    "plain": "plain data",
    "augmented": "morphed, augmented layer",
    "without": "morphed, no augmented layer",
    "random": "morphed, first layer random",
    "no shuffle": "morphed, channels not shuffled",
    "frozen": "plain data, first layer frozen",
}
MEASURES = ("accuracy", "auc")


def row_of(data: str, setting: str | None, arm: str, found: Sequence[Mapping[str, Any]]) -> Row:
    """Scores of an arm, one for each seed."""
    row: Row = {"data": data, "setting": setting, "arm": arm}
    for measure in MEASURES:
        each = [one[measure] for one in found]
        if None not in each:
            row[measure] = spread(each)
    return row


def spread(each: Sequence[float]) -> Row:
    """Mean and standard deviation, which one number alone does not have.

    >>> spread([0.5, 0.6, 0.7])
    {'mean': 0.6, 'sd': 0.1, 'each': [0.5, 0.6, 0.7]}
    """
    sd = round(statistics.stdev(each), 6) if len(each) > 1 else None
    return {"mean": round(statistics.mean(each), 6), "sd": sd, "each": [round(one, 6) for one in each]}


def pair_of(plain: Row, other: Row, measure: str = "accuracy") -> Row:
    """How much an arm is below plain data, seed by seed, with the standard error of that mean.

    >>> rows = [{"data": "d", "setting": None, "arm": a, "accuracy": {"each": e}}
    ...         for a, e in (("plain", [0.5, 0.6]), ("other", [0.4, 0.5]))]
    >>> pair_of(*rows)["difference"], pair_of(*rows)["standard_error"]
    (0.1, 0.0)
    """
    both = zip(plain[measure]["each"], other[measure]["each"], strict=True)
    each = [one - two for one, two in both]
    error = round(statistics.stdev(each) / math.sqrt(len(each)), 6) if len(each) > 1 else None
    difference = round(statistics.mean(each), 6)
    return {
        "data": other["data"], "setting": other["setting"], "arm": other["arm"], "measure": measure,
        "difference": difference, "standard_error": error,
        "within_two_standard_errors": None if error is None else abs(difference) <= 2 * error,
    }  # fmt: skip


def pairs_of(rows: Sequence[Row]) -> list[Row]:
    """Every arm against plain data, in each measure that both have."""
    plain = {row["data"]: row for row in rows if row["arm"] == "plain"}
    return [
        pair_of(plain[row["data"]], row, measure)
        for row in rows
        for measure in MEASURES
        if row["arm"] != "plain" and measure in row
    ]


def table(result: Row, measures: Sequence[str], published: Mapping[tuple[str, str], str]) -> str:
    """All rows, with what the paper has beside them where it has something."""
    has_paper = any((row["data"], row["arm"]) in published for row in result["rows"])
    head = ["images", "arm", "first layer from"]
    for measure in measures:
        head += ["AUC" if measure == "auc" else measure, "below plain"]
    lines = [[*head, *(["the paper's"] if has_paper else [])]]
    for row in result["rows"]:
        paper = published.get((row["data"], row["arm"]), "-")
        cells = [cell for measure in measures for cell in _cells(result, row, measure)]
        line = [NAMES.get(row["data"], row["data"]), IN_WORDS[row["arm"]], row["setting"] or "-"]
        lines.append([*line, *cells, *([paper] if has_paper else [])])
    return markdown(lines)


def _cells(result: Row, row: Row, measure: str) -> tuple[str, str]:
    """A score with its standard deviation, and the difference to plain data with its standard error."""
    if measure not in row:
        return "-", "-"
    score = shown(row[measure]["mean"], measure)
    if row[measure]["sd"] is not None:
        score += f" ± {_bare(row[measure]['sd'], measure)}"
    named = (row["data"], row["setting"], row["arm"], measure)
    found = [one for one in result["pairs"] if tuple(one[name] for name in _NAMED) == named]
    if not found:
        return score, "-"
    difference = _bare(found[0]["difference"], measure)
    error = found[0]["standard_error"]
    return score, difference if error is None else f"{difference} ± {_bare(error, measure)}"


_NAMED = ("data", "setting", "arm", "measure")


def _bare(value: float, measure: str) -> str:
    """A difference: in points, or of areas.

    >>> _bare(0.0123, "accuracy"), _bare(0.0123, "auc")
    ('1.2', '0.012')
    """
    return f"{value:.3f}" if measure == "auc" else f"{100 * value:.1f}"


def drawing(result: Row, measure: str = "accuracy") -> Figure:
    """Every seed of every arm as a dot, and means as lines, a panel for each set of images."""
    names = list(dict.fromkeys(row["data"] for row in result["rows"]))
    figure = Figure(figsize=(1 + 3.6 * len(names), 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        rows = [row for row in result["rows"] if row["data"] == name and measure in row]
        _draw_set(axes, rows, measure)
        axes.set_title(NAMES.get(name, name))
    return figure


def _draw_set(axes: Axes, rows: Sequence[Row], measure: str) -> None:
    scale = 1 if measure == "auc" else 100
    for place, row in enumerate(rows):
        scores = [scale * one for one in row[measure]["each"]]
        axes.plot([place] * len(scores), scores, "o", markersize=4, alpha=0.7, color="tab:blue")
        mean = scale * row[measure]["mean"]
        axes.hlines(mean, place - 0.3, place + 0.3, color="black", linewidth=1)
    labels = [f"{row['arm']}\n({row['setting']})" if row["setting"] else row["arm"] for row in rows]
    axes.set_xticks(range(len(rows)), labels=labels, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_ylabel("AUC" if measure == "auc" else "test accuracy, %")
    axes.set_ylim(*((0.4, 1.02) if measure == "auc" else (0, None)))
    axes.grid(axis="y", alpha=0.3)
