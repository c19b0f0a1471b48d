"""The frontier as a table and as a drawing, from its result."""

from collections.abc import Iterable, Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

NO_NOISE = 32.0  # bits, where the drawing has what was learned without noise
MARKERS = "svDo"
ALT = "Test accuracy or AUC against the bits that each row may tell about its image, a line for each front"
Row = dict[str, Any]


def table(result: Row, measure: str = "accuracy", sets: Iterable[str] | None = None) -> str:
    """A table in Markdown: a line for each set of images and front, a column for each number of bits."""
    wanted = None if sets is None else [*sets]
    lines = list[list[str]]()
    for images in result["sets"]:
        if wanted is None or images["images"] in wanted:
            lines += [_line(images, way, measure) for way in images["ways"]]
    heads = [bits_in_words(row["bits"]) for row in result["sets"][0]["ways"][0]["rows"]]
    return markdown([["images", "front", "features", "train on", *heads], *lines])


def sizes_table(result: Row, images: str, measure: str = "accuracy") -> str:
    """A table of fewer and more training images, of the last front."""
    (found,) = [one for one in result["sets"] if one["images"] == images]
    last = found["ways"][-1]
    lines = [
        [f"{one['train_images']:,}", *(figure(row[measure]["mean"], measure) for row in one["rows"])]
        for one in (*last["fewer_images"], last)
    ]
    return markdown([["train on", *(bits_in_words(row["bits"]) for row in last["rows"])], *lines])


def markdown(rows: list[list[str]]) -> str:
    """Rows as a table; the first is its head.

    >>> print(markdown([["a", "b"], ["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def bits_in_words(bits: float | None) -> str:
    """The head of a column.

    >>> bits_in_words(None), bits_in_words(1.0), bits_in_words(0.5)
    ('no noise', '1 bit', '0.5 bits')
    """
    return "no noise" if bits is None else f"{bits:g} bit{'' if bits == 1 else 's'}"


def figure(value: float, measure: str) -> str:
    """A score as it stands in tables: an area with three digits, all else in per cent.

    >>> figure(0.8951, "auc"), figure(0.742, "accuracy")
    ('0.895', '74.2 %')
    """
    return f"{value:.3f}" if measure == "auc" else f"{100 * value:.1f} %"


def _line(images: Row, way: Row, measure: str) -> list[str]:
    cells = [figure(row[measure]["mean"], measure) for row in way["rows"]]
    return [images["images"], way["way"], f"{way['features']:,}", f"{way['train_images']:,}", *cells]


def drawing(result: Row) -> Figure:
    """The frontier of every set of images, side by side."""
    sets = result["sets"]
    figure = Figure(figsize=(max(1 + 3.2 * len(sets), 6), 3.6), layout="constrained")
    for axes, images in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets, strict=True):
        _draw_set(axes, images, "accuracy" if images["classes"] == 10 else "auc")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw_set(axes: Axes, images: Row, measure: str) -> None:
    ways = images["ways"]
    for way, marker in zip(ways, MARKERS, strict=False):
        points = sorted(_points(way, measure))
        bits, means, lows, highs = zip(*points, strict=True)
        (line,) = axes.plot(bits, means, marker=marker, markersize=4, label=way["way"])
        axes.fill_between(bits, lows, highs, color=line.get_color(), alpha=0.2, linewidth=0)
    numbers = [row["bits"] for row in ways[0]["rows"]]
    axes.set(
        title=f"{images['images']}, {ways[-1]['train_images']:,} images",
        xlabel="bits about each image, at most",
        ylabel="AUC" if measure == "auc" else "test accuracy, %",
        xscale="log",
    )
    axes.set_xticks(
        [NO_NOISE if bits is None else bits for bits in numbers],
        labels=["none" if bits is None else f"{bits:g}" for bits in numbers],
    )
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def _points(way: Row, measure: str) -> Iterator[tuple[float, float, float, float]]:
    scale = 1 if measure == "auc" else 100
    for row in way["rows"]:
        found = row[measure]
        bits = NO_NOISE if row["bits"] is None else row["bits"]
        yield bits, scale * found["mean"], scale * found["low"], scale * found["high"]
