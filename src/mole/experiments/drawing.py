"""How figures look: one style for all of them, and pictures within them.

    with figure_style():
        figure = Figure(figsize=(9.0, 4.4), layout="constrained")

Colours are those of Okabe and Ito, which colour-blind people tell apart; lines differ by their markers too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from mole.scheme.shapes import Array

ORANGE, SKY, GREEN, BLUE, RED, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
MARKERS = "osD^vP"
INK, GREY, PALE = "#222222", "#777777", "#EDEDED"
STYLE: Any = {
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titleweight": "bold",
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw within this, so that all figures look alike."""
    with mpl.rc_context(STYLE):
        yield


def show_image(axes: Axes, pixels: Array, title: str = "", below: str = "") -> None:
    """Pixels from 0 to 1, (1 or 3, height, width), with a title above and a line or two below.

    Args:
        axes: where.
        pixels: what is below 0 or above 1 is clipped.
        title: above it.
        below: under it.
    """
    shown = np.moveaxis(np.clip(pixels, 0, 1), 0, -1)
    grey: Any = {"cmap": "gray", "vmin": 0, "vmax": 1}
    # Without interpolation, which in SVG would keep many times as many pixels.
    axes.imshow(shown if shown.shape[-1] == 3 else shown[..., 0], interpolation="none", **grey)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(title, fontsize=9, fontweight="normal", loc="center", pad=4)
    axes.set_xlabel(below, fontsize=8, labelpad=3)
