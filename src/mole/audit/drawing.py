"""A line on a grid, as SVG that can stand inside a page: small, the same on every run, light or dark.

The page's own colours show through: everything is drawn in `currentColor`, the line in `--accent`.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from mole.audit.report import Picture

# Stand-ins that are replaced by the page's colours after drawing: matplotlib knows no CSS.
INK, ACCENT = "#010203", "#040506"
STYLE: Any = {
    "svg.hashsalt": "mole",  # otherwise identifiers are random
    "svg.fonttype": "none",  # words stay words, in the page's own font
    "font.size": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
UNWANTED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)
FONTS = re.compile(r" *font-family: [^;\"]*;?")
ANCHOR = re.compile(r'(?:href="#|url\(#)([^")]+)')
EMPTY = re.compile(r"<(g|defs)>\s*</\1>|<g/>")


@dataclass(frozen=True)
class Plot:
    """A figure as SVG, with its numbers as a table for those who cannot see it.

    Attributes:
        title, words: what it is, and what to see in it.
        svg: the drawing, by `line_plot`.
        columns, rows: the same as a table.
        pictures: pictures that belong to it, in order.
    """

    title: str
    words: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    pictures: tuple[Picture, ...] = ()


def line_plot(
    x: Sequence[float],
    y: Sequence[float],
    *,
    name: str,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
) -> str:
    """A line with a dot at every point, as one `<svg>` element.

    >>> svg = line_plot([1, 2], [0, 1], name="p", title="T", description="D", x_label="x", y_label="y")
    >>> svg[:16], "<title>T</title>" in svg, "<desc>D</desc>" in svg
    ('<svg role="img" ', True, True)

    Args:
        x: where the points are ...
        y: ... and how high.
        name: goes in front of every identifier, so that two drawings fit on one page.
        title: for those who cannot see it.
        description: more for them.
        x_label: of the lower axis.
        y_label: of the left axis.
        logarithmic: whether the x axis is logarithmic.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.0, 3.2), layout="constrained", facecolor="none")
        axes = figure.add_subplot(facecolor="none")
        axes.grid(color=INK, alpha=0.14, linewidth=0.8)
        axes.plot(x, y, color=ACCENT, linewidth=2.2, marker="o", markersize=6, clip_on=False, zorder=3)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=6)
        axes.set(xlabel=x_label, ylabel=y_label, ylim=(min(0.0, *y), 1.0))
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:,g}")
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=NO_METADATA)
    return _fit_for_a_page(file.getvalue(), name, title, description)


def _fit_for_a_page(svg: str, name: str, title: str, description: str) -> str:
    """Only the element itself: named, in the page's colours, without what would reach out of it."""
    body = UNWANTED.sub("", svg[svg.index("<svg") :])
    wanted = set(ANCHOR.findall(body))
    body = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in wanted else "", body)
    body = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", body)
    body = FONTS.sub("", body)
    body = body.replace(INK, "currentColor").replace(ACCENT, "var(--accent, currentColor)")
    while EMPTY.search(body):
        body = EMPTY.sub("", body)
    box = re.search(r'viewBox="[^"]*"', body)
    start = (
        f'<svg role="img" aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" {box[0] if box else ""}>'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    )
    return re.sub(r"\s*\n\s*", "\n", start + body[body.index(">") + 1 :]).strip()
