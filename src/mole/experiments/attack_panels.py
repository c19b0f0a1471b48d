"""The figure of attacks as a drawing of four panels, and as tables."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mole.experiments.drawing import BLUE, COLOURS, GREEN, GREY, MARKERS, ORANGE, PURPLE, RED, figure_style
from mole.experiments.experiment import Result
from mole.experiments.frontier_report import markdown
from mole.quantities import counted

ALT = (
    "Four panels. The share of images that attackers pick out: against kappa and against the side of tiles "
    "the developer always has all of them, and strangers with similar images nearly all as soon as the "
    "core is small; against the core at kappa 1. The error of rebuilt images against known pairs: it drops "
    "to nothing at the counted number of pairs, and with the augmented layer one image is enough."
)
SOLVED = 0.05  # an error up to which a core counts as found
LEAST = 1e-7  # error that is drawn
# What the drawing calls each attack, its colour and its marker.
LINES = {
    "channel-fingerprint": ("developer, channel fingerprint", RED, "^"),
    "block-statistics": ("stranger, statistics of blocks", BLUE, "o"),
    "moment-matching": ("stranger, moments and labels", ORANGE, "s"),
    "ica-small-cores": ("stranger, independent components", GREEN, "D"),
    "pca-matching": ("stranger, principal components", PURPLE, "v"),
}
# Lines lie on each other where everybody has everything: this one is seen around the others.
ON_TOP: Any = {"markerfacecolor": "none", "markersize": 11, "zorder": 5, "linestyle": "--"}
SHORT = {
    "channel-fingerprint": "developer,\nfingerprint",
    "moment-matching": "stranger,\nmoments, labels",
    "moment-matching, no labels": "stranger,\nmoments",
    "pca-matching": "stranger,\nprincipal\ncomponents",
}


def draw(result: Result) -> Figure:
    """Four panels."""
    with figure_style():
        figure = Figure(figsize=(10.0, 8.0), layout="constrained")
        (kappa, tile), (pairs, core) = figure.subplots(2, 2)
        side, tiled = result["side"], result["tiled_side"]
        _shares(kappa, result["kappa"], "kappa", result["among"])
        kappa.set(xlabel=f"kappa (blocks of rows, {side}x{side} images)", title="Against kappa")
        _shares(tile, result["tile"], "tile", result["among"])
        tile.set(
            xlabel=f"side of a tile, pixels ({tiled}x{tiled} images)", title="Against the side of tiles"
        )
        _pairs(pairs, result["pairs"])
        _cores(core, result["core"], result["among"])
        figure.legend(*kappa.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        figure.supxlabel(
            f"{result['images']}, {result['rows']:,} images delivered and as many others public; "
            f"{result['seeds']} keys, bars from least to largest.\nWhitened core where nothing else is "
            "said; q: side of the core; dotted: chance, and an error of 5 %.",
            fontsize=8,
        )
    return figure


def _shares(axes: Axes, rows: Sequence[Result], over: str, among: int) -> None:
    """Shares of images that were picked out, a line for each attack."""
    for name, (label, colour, marker) in LINES.items():
        known = [row for row in rows if row.get(name)]
        if known:
            shares = [row[name]["reidentified"] for row in known]
            mean = [100 * share["mean"] for share in shares]
            reach = [[100 * abs(share["mean"] - share[end]) for share in shares] for end in ("low", "high")]
            axes.errorbar(
                [row[over] for row in known], mean, yerr=reach, color=colour, marker=marker,
                label=label, capsize=2, linewidth=1.4,
                **(ON_TOP if name == "channel-fingerprint" else {}),
            )  # fmt: skip
    places = [row[over] for row in rows]
    axes.set_xscale("log")
    axes.set_xticks(
        places, labels=[f"{place}\nq = {row['core_side']}" for place, row in zip(places, rows, strict=True)]
    )
    axes.tick_params(axis="x", labelsize=7)
    axes.minorticks_off()
    _percent(axes, among)


def _percent(axes: Axes, among: int) -> None:
    axes.axhline(100 / among, color=GREY, linewidth=0.9, linestyle=":")
    axes.set(ylim=(-3, 106), ylabel=f"picked out of {among} images, %")


def _pairs(axes: Axes, rows: Sequence[Result]) -> None:
    """The error on other images, a line for each kappa; and with the augmented layer."""
    for row, colour, marker in zip(rows, COLOURS, MARKERS, strict=False):
        curve = [(point["pairs"], max(point["error"], LEAST)) for point in row["curve"]]
        label = f"kappa = {row['kappa']}: {counted(row['counted'], 'pair')}"
        axes.plot(*zip(*curve, strict=True), color=colour, marker=marker, markersize=4, label=label)
        axes.axvline(row["counted"], color=colour, linewidth=0.8, linestyle="--", alpha=0.6)
    one = rows[0]["with_layer"]
    if one["error"] is not None:
        star: Any = {"marker": "*", "markersize": 13, "linestyle": "", "color": RED}
        axes.plot(one["pairs"], max(one["error"], LEAST), label="with the augmented layer", **star)
    axes.axhline(SOLVED, color=GREY, linewidth=0.9, linestyle=":")
    axes.set(
        xscale="log", yscale="log", title="Against known pairs (orthogonal core)",
        xlabel="images known both plain and morphed", ylabel="relative error of other images",
    )  # fmt: skip
    axes.set_ylim(bottom=1e-13)  # room for the legend
    axes.legend(fontsize=7.5, loc="lower center", ncols=2)


def _cores(axes: Axes, rows: Sequence[Result], among: int) -> None:
    """Bars: attacks side by side, for each core."""
    names, width = [name for name in SHORT if rows[0].get(name)], 0.8 / len(rows)
    for number, (row, colour) in enumerate(zip(rows, (BLUE, ORANGE, GREEN), strict=False)):
        places = [at + width * (number - (len(rows) - 1) / 2) for at in range(len(names))]
        shares = [row[name]["reidentified"] for name in names]
        mean = [100 * share["mean"] for share in shares]
        reach = [[100 * abs(share["mean"] - share[end]) for share in shares] for end in ("low", "high")]
        bars = axes.bar(places, mean, 0.92 * width, yerr=reach, capsize=2, color=colour, label=row["core"])
        axes.bar_label(bars, fmt="%.0f", fontsize=7.5, padding=2)
    axes.set_xticks(range(len(names)), labels=[SHORT[name] for name in names], fontsize=8)
    _percent(axes, among)
    axes.set(title="Against the core (kappa = 1)", ylim=(-3, 118))
    axes.legend(title="core", loc="upper right")


def report(result: Result) -> str:
    """Tables of the four panels."""
    parts = [
        f"Picked out of {result['among']} images, mean of {result['seeds']} keys. "
        f"{result['images']}, {result['rows']:,} delivered, as many public."
    ]
    for panel, what in (("kappa", "kappa"), ("tile", "side of tiles"), ("core", "core")):
        rows = result[panel]
        names = [name for name in rows[0] if isinstance(rows[0][name], dict | None)]
        heads = [what, "side of the core", *names]
        lines = [
            [str(row[panel]), str(row["core_side"]), *(_share(row[name]) for name in names)] for row in rows
        ]
        parts.append(markdown([heads, *lines]))
    heads = [
        "kappa",
        "pairs, paper",
        "pairs, counted",
        "pairs that were enough",
        "with the layer: images, error",
    ]
    lines = [
        [
            str(row["kappa"]), f"{row['published']:,}", f"{row['counted']:,}", str(row["enough"]),
            f"{row['with_layer']['pairs']}, {row['with_layer']['error']:.0e}",
        ]
        for row in result["pairs"]
    ]  # fmt: skip
    return "\n\n".join([*parts, markdown([heads, *lines])])


def _share(found: Result | None) -> str:
    return "-" if found is None else f"{100 * found['reidentified']['mean']:.1f} %"
