"""Two drawings that explain the scheme: unrolling, with the layer as a matrix; and scaling the core.

What they show is computed by the scheme's own functions on a tiny example, so that they cannot be wrong
about it: a sample of 2 channels of 3x3, a 2x2 convolution with 2 channels, a core of 2x2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mole.experiments.drawing import BLUE, GREY, INK, ORANGE, PALE, figure_style
from mole.experiments.experiment import Drawing, Experiment, Request, Result
from mole.experiments.frontier_report import markdown
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_matrix import layer_matrix
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Core, Morphing
from mole.scheme.shapes import unroll

CHANNELS, SIDE, OUTPUTS, KERNEL = 2, 3, 2, 2
CORE = ((0.6, -0.8), (0.8, 0.6))  # a rotation
TIMES = 3  # that it stands on the diagonal
UNROLL_ALT = (
    "A sample of two channels of 3x3 becomes a row vector of 18 elements; a matrix of 18x8 has the weights "
    "of a 2x2 convolution wherever they meet a pixel; the product of both, rolled up, is two maps of 2x2."
)
DIAGONAL_ALT = (
    "A core of 2x2 stands three times on the diagonal of a matrix of 6x6, which is zero elsewhere; a row "
    "vector of six elements is morphed in three blocks of two."
)


def unrolling(request: Request) -> Result:
    """A sample whose elements are numbered, its row vector, and the matrix of a convolution."""
    sample = np.arange(1.0, 1 + CHANNELS * SIDE**2).reshape(1, CHANNELS, SIDE, SIDE)
    # Weights are numbered too: each place of the matrix says which one stands there.
    weight = np.arange(1.0, 1 + OUTPUTS * CHANNELS * KERNEL**2)
    layer = FirstLayer.conv(
        weight.reshape(OUTPUTS, CHANNELS, KERNEL, KERNEL), None, input_shape=(CHANNELS, SIDE, SIDE)
    )
    matrix = layer_matrix(layer)
    features = unroll(sample) @ matrix
    return {
        "sample": sample[0].tolist(),
        "row_vector": unroll(sample)[0].tolist(),
        "weight_at": matrix.astype(int).tolist(),
        "features": features[0].tolist(),
        "feature_shape": list(layer.output_shape),
    }


def diagonal(request: Request) -> Result:
    """A core, and the matrix that morphing a sample multiplies it by."""
    core = np.array(CORE)
    side = len(core) * TIMES
    morphing = Morphing(Layout.of("rows", (side,), TIMES), Core(core, core.T))
    return {"core": core.tolist(), "kappa": TIMES, "matrix": morphing.morph(np.eye(side)).tolist()}


@dataclass(frozen=True)
class Board:
    """Axes without scales on which cells are drawn; one unit is one cell, and y grows downwards."""

    axes: Axes

    @classmethod
    def of(cls, axes: Axes, width: float, height: float) -> "Board":
        """A board of some size."""
        axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
        axes.axis("off")
        return cls(axes)

    def cell(self, x: float, y: float, text: str, colour: str, strength: float = 0.35) -> None:
        """A square with a short text."""
        self.axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, alpha=strength, linewidth=0))
        self.axes.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=GREY, linewidth=0.6))
        self.axes.text(x + 0.5, y + 0.52, text, ha="center", va="center", fontsize=7.5, color=INK)

    def words(self, x: float, y: float, text: str, **look: Any) -> None:
        """A text whose middle is at a place."""
        self.axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": 9, **look})

    def arrow(self, start: tuple[float, float], stop: tuple[float, float], bend: float = 0.0) -> None:
        """From one place to another."""
        look = {"arrowstyle": "-|>", "color": GREY, "lw": 1.1, "connectionstyle": f"arc3,rad={bend}"}
        self.axes.annotate("", stop, start, arrowprops=look)


def draw_unrolling(result: Result) -> Figure:
    """A sample becomes a row vector; times C it gives the features of a convolution."""
    sample, weights = np.array(result["sample"]), np.array(result["weight_at"])
    inputs, outputs = weights.shape
    with figure_style():
        figure = Figure(figsize=(9.6, 8.4), layout="constrained")
        board = Board.of(figure.subplots(), 34, 30.5)
        board.words(0, 0.4, "1. Unroll: row by row, channel by channel", ha="left", fontweight="bold")
        for channel, (at, colour) in enumerate(zip((3, 11), (BLUE, ORANGE), strict=True)):
            for (y, x), value in np.ndenumerate(sample[channel]):
                board.cell(at + x, 2 + y, f"{value:.0f}", colour)
            board.words(at + 1.5, 5.6, f"channel {channel}", fontsize=8)
        board.words(
            17.5, 3.4, r"$\mathbf{D}$: $\alpha$ = 2 channels of $m \times m$ = 3$\times$3", ha="left"
        )
        for place, value in enumerate(result["row_vector"]):
            board.cell(2 + place, 8, f"{value:.0f}", BLUE if place < inputs // 2 else ORANGE)
        board.arrow((4.5, 6.1), (6.2, 7.8))
        board.arrow((12.5, 6.1), (14.6, 7.8))
        board.words(20.6, 8.5, r"$\mathbf{D}^r$: $1 \times \alpha m^2$ = 1$\times$18", ha="left")
        text = "2. A convolution is one matrix: each weight stands wherever it meets a pixel"
        board.words(0, 10.9, text, ha="left", fontweight="bold")
        for (y, x), weight in np.ndenumerate(weights):
            kernel = BLUE if y < inputs // 2 else ORANGE
            board.cell(4 + x, 12 + y, str(weight) if weight else "", kernel if weight else PALE)
        board.words(2.2, 21, r"$\mathbf{C}$:" "\n" r"$\alpha m^2 \times \beta n^2$" "\n" r"= 18$\times$8")
        board.words(4 + outputs / 4, 30.3, "output\nchannel 0", fontsize=7.5, va="top")
        board.words(4 + 3 * outputs / 4, 30.3, "output\nchannel 1", fontsize=7.5, va="top")
        legend = (
            "Cells are numbered by the weight that stands there:\n"
            r"$\beta$ = 2 kernels for 2 channels, each $p \times p$ = 2$\times$2." "\n"
            "Blue: weights that meet channel 0; orange: channel 1.\nEmpty cells are zero."
        )  # fmt: skip
        board.words(14, 15, legend, ha="left", fontsize=8.5)
        text = "3. The product, rolled up again, is the feature maps"
        board.words(14, 19.6, text, ha="left", fontweight="bold")
        for place in range(outputs):
            board.cell(16 + place, 21.2, f"$f_{place + 1}$", PALE, 1.0)
        board.words(14, 21.7, r"$\mathbf{F}^r =$", ha="left")
        board.words(25, 21.7, r"$= \mathbf{D}^r \mathbf{C}$: $1 \times \beta n^2$ = 1$\times$8", ha="left")
        maps = np.arange(1, 1 + outputs).reshape(result["feature_shape"])
        for channel in range(len(maps)):
            for (y, x), number in np.ndenumerate(maps[channel]):
                board.cell(17 + 4 * channel + x, 24.6 + y, f"$f_{number}$", PALE, 1.0)
            board.words(18 + 4 * channel, 27.2, f"map {channel}", fontsize=8)
            board.arrow((18 + 4 * channel, 22.4), (18 + 4 * channel, 24.4))
        board.words(25, 25.6, r"$\beta$ = 2 maps of $n \times n$ = 2$\times$2", ha="left")
    return figure


def draw_diagonal(result: Result) -> Figure:
    """The core, M with the core kappa times on its diagonal, and a sample morphed block by block."""
    core, matrix = np.array(result["core"]), np.array(result["matrix"])
    kappa, size, side = result["kappa"], len(core), len(matrix)
    colours = (BLUE, ORANGE, "#009E73")
    with figure_style():
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        board = Board.of(figure.subplots(), 24, 10.6)
        text = r"The core $\mathbf{M}'$ stands $\kappa$ times on the diagonal of $\mathbf{M}$"
        board.words(0, 0.4, text, ha="left", fontweight="bold", fontsize=10.5)
        for (y, x), value in np.ndenumerate(core):
            board.cell(1 + x, 4 + y, f"{value:g}", GREY)
        board.words(2, 6.7, r"$\mathbf{M}'$: $q \times q$ = 2$\times$2")
        board.arrow((3.5, 5), (6.2, 5))
        board.words(4.85, 4.4, rf"$\kappa$ = {kappa}")
        for (y, x), value in np.ndenumerate(matrix):
            inside = y // size == x // size
            colour = colours[x // size] if inside else PALE
            board.cell(6.6 + x, 2 + y, f"{value:g}" if inside else "0", colour, 0.35 if inside else 0.6)
        board.words(6.6 + side / 2, 8.7, r"$\mathbf{M}$: $\alpha m^2 \times \alpha m^2$ = 6$\times$6")
        board.words(6.6 + side / 2, 9.7, r"$\kappa = \alpha m^2 / q$ = 6 / 2", fontsize=8.5)
        for letter, y in (("d", 2.6), ("t", 6.4)):
            for place in range(side):
                board.cell(15.6 + place, y, f"${letter}_{place + 1}$", colours[place // size])
        for block in range(kappa):
            middle = 15.6 + size * block + size / 2
            board.arrow((middle, 3.8), (middle, 6.2))
            board.words(middle + 0.55, 5.0, r"$\times\mathbf{M}'$", fontsize=8)
        board.words(15.6 + side / 2, 2.0, r"row vector $\mathbf{D}^r$")
        board.words(15.6 + side / 2, 8.1, r"morphed: $\mathbf{T}^r = \mathbf{D}^r \mathbf{M}$")
        text = "each block of $q$ elements is mixed\nwith itself, by the same core"
        board.words(15.6 + side / 2, 9.4, text, fontsize=8.5)
    return figure


def report_unrolling(result: Result) -> str:
    """The shapes, and the features that come out."""
    weights = np.array(result["weight_at"])
    sizes = {
        "sample": "x".join(map(str, np.shape(result["sample"]))),
        "row vector": f"1x{len(result['row_vector'])}",
        "matrix of the layer": "x".join(map(str, weights.shape)),
        "of its elements not zero": f"{np.count_nonzero(weights)} of {weights.size}",
        "features": "x".join(map(str, result["feature_shape"])),
    }
    return markdown([["what", "size"], *([name, size] for name, size in sizes.items())])


def report_diagonal(result: Result) -> str:
    """The matrix, row by row."""
    matrix = [[f"{value:g}" for value in row] for row in result["matrix"]]
    return markdown([[f"column {number}" for number in range(1, 1 + len(matrix))], *matrix])


UNROLL = Experiment(
    summary="how a sample is unrolled, and a convolution becomes a matrix",
    measure=unrolling,
    report=report_unrolling,
    drawings={"": Drawing(draw_unrolling, UNROLL_ALT)},
    presets=("cpu", "tiny"),
    takes=(),
)
DIAGONAL = Experiment(
    summary="how the core is scaled along the diagonal",
    measure=diagonal,
    report=report_diagonal,
    drawings={"": Drawing(draw_diagonal, DIAGONAL_ALT)},
    presets=("cpu", "tiny"),
    takes=(),
)
