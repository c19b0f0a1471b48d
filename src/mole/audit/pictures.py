"""A line on a grid as SVG that can stand inside a page: small, the same on every run, dark or light.

The page's own colours show through: everything is drawn in `currentColor`, the line in `--accent`.
"""

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from PIL import Image

from mole.audit.report import Picture
from mole.errors import ShapeError
from mole.scheme.shapes import Array, Shape

# Colours that are exchanged for the page's after drawing: matplotlib knows no CSS.
INK, ACCENT = "#010203", "#040506"
STYLE: Any = {
    "svg.hashsalt": "mole",  # else identifiers are random
    "svg.fonttype": "none",  # words stay words, in the page's own letters
    "font.size": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
UNWANTED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)
LETTERS = re.compile(r" *font-family: [^;\"]*;?")
ANCHOR = re.compile(r'(?:href="#|url\(#)([^")]+)')
EMPTY = re.compile(r"<(g|defs)>\s*</\1>|<g/>")


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
        name: goes in front of every identifier, so that two drawings fit in one page.
        title: for those who cannot see it.
        description: more for them.
        x_label: of the lower axis.
        y_label: of the left axis.
        logarithmic: whether x is told in powers.
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
    body = LETTERS.sub("", body)
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


MIN_SPREAD = 1e-12  # below this an array has one shade only


def picture(caption: str, pixels: Array) -> Picture:
    """A picture from pixels between 0 and 1, (1 or 3, height, width) or (height, width).

    >>> drawn = picture("a grey square", np.full((8, 8), 0.5))
    >>> drawn.caption, drawn.png[1:4]
    ('a grey square', b'PNG')

    Args:
        caption: what it shows; also read aloud to those who cannot see it.
        pixels: what is below 0 or above 1 is cut off.
    """
    if pixels.ndim == 2:
        pixels = pixels[np.newaxis]
    if pixels.ndim != 3 or len(pixels) not in (1, 3):
        raise ShapeError(f"an array of shape {pixels.shape} is no picture: give 1 or 3 channels first")
    bytes_ = np.rint(np.clip(np.nan_to_num(pixels), 0, 1) * 255).astype(np.uint8)
    shown = Image.fromarray(bytes_[0] if len(bytes_) == 1 else np.moveaxis(bytes_, 0, -1))
    file = io.BytesIO()
    shown.save(file, "PNG", optimize=True)
    return Picture(caption, file.getvalue())


def stretched(values: Array) -> Array:
    """Numbers of any size as pixels: the mean becomes mid-grey, three standard deviations black or white.

    >>> stretched(np.array([-9.0, 0.0, 0.0, 9.0])).round(2).tolist()
    [0.26, 0.5, 0.5, 0.74]
    """
    spread = max(float(values.std()), MIN_SPREAD)
    pixels: Array = np.clip(0.5 + (values - values.mean()) / (6 * spread), 0, 1)
    return pixels


def can_be_shown(shape: Shape) -> bool:
    """Whether samples of this shape are grey or colour images.

    >>> can_be_shown((3, 32, 32)), can_be_shown((1, 28, 28)), can_be_shown((64,)), can_be_shown((2, 8, 8))
    (True, True, False, False)
    """
    return len(shape) == 3 and shape[0] in (1, 3)
