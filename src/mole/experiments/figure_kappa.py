"""How alike morphed pictures are to plain ones, for every kappa: the paper's figure about kappa.

The same core stands kappa times on the diagonal, so it mixes only alpha m^2 / kappa elements with each
other. Structural similarity says how much of a picture an eye would still see; it says nothing about what
an attack finds, for which there is another figure.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from mole.audit.pictures import stretched
from mole.experiments.channel_scores import spread_of
from mole.experiments.drawing import COLOURS, MARKERS, figure_style, show_image
from mole.experiments.experiment import Drawing, Experiment, Request, Result
from mole.experiments.frontier_report import markdown
from mole.experiments.photographs import CAT, SQUARES, likeness, own_normalisation, photograph
from mole.provider.keys import MorphKey
from mole.scheme.layouts import Layout
from mole.scheme.morphing import Core, Morphing
from mole.scheme.shapes import Array, Shape, block_size, divisors

UNIFORM = "uniform(0, 1)"
CORES = (UNIFORM, "gaussian", "orthogonal")
IN_WORDS = {
    UNIFORM: "between 0 and 1, as in the authors' program",
    "gaussian": "Gaussian",
    "orthogonal": "orthogonal, as in this program",
}
SHOWN = 6  # of the kappas, as pictures
SMALLEST = 2  # side of a core: one of side 1 mixes nothing
SIDES = {"cpu": 32, "tiny": 16}  # of the photographs
ALT = (
    "Structural similarity of morphed with plain photographs against kappa, one curve for each kind of "
    "core, and below it a cat morphed with six kappas. With elements between 0 and 1 similarity rises "
    "towards 1 as kappa grows; with a Gaussian or an orthogonal one it stays below 0.2 until a core has a "
    "handful of elements."
)


def useful_kappas(shape: Shape) -> list[int]:
    """Every kappa that cuts a sample into blocks of at least two elements.

    >>> useful_kappas((1, 3, 4))
    [1, 2, 3, 4, 6]
    """
    elements = int(np.prod(shape))
    return [kappa for kappa in divisors(elements) if elements // kappa >= SMALLEST]


def measure(request: Request) -> Result:
    """Structural similarity at every kappa and core, over some photographs and keys."""
    side = SIDES[request.preset]
    kappas, rows = useful_kappas((3, side, side)), []
    for number, kappa in enumerate(kappas):
        request.progress(number, len(kappas))
        facts = ("figure-kappa", side, kappa, request.seeds)
        rows.append(request.store.piece(facts, partial(_row, side, kappa, request.seeds)))
    request.progress(len(kappas), len(kappas))
    return {"side": side, "photographs": [*SQUARES], "rows": rows}


def _row(side: int, kappa: int, keys: int) -> Result:
    """What a kappa leaves to see, by core."""
    plain, shape = _plain(side), (3, side, side)
    row: Result = {"kappa": kappa, "core_side": block_size(shape, kappa)}
    for core in CORES:
        found = [
            likeness(one, other)
            for key in range(keys)
            for one, other in zip(plain, morphing(core, shape, kappa, key).morph(plain), strict=True)
        ]
        row[core] = spread_of(found)
    return row


def morphing(core: str, shape: Shape, kappa: int, seed: int) -> Morphing:
    """A morphing with a core of some kind, the same for the same seed."""
    if core != UNIFORM:
        return MorphKey.generate(shape, kappa=kappa, core=core, insecure_seed=bytes([seed] * 32)).morphing
    size = block_size(shape, kappa)
    matrix = torch.rand(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Morphing(Layout.of("rows", shape, kappa), Core(matrix.numpy(), lambda: np.linalg.inv(matrix)))


def report(result: Result) -> str:
    """The same as a table in Markdown."""
    heads = ["kappa", "side of the core", *(f"SSIM, core {IN_WORDS[core]}" for core in CORES)]
    return markdown([heads, *(_cells(row) for row in result["rows"])])


def _cells(row: Result) -> list[str]:
    found = [f"{row[core]['mean']:.3f}" for core in CORES]
    return [f"{row['kappa']:,}", f"{row['core_side']:,}", *found]


def draw(result: Result) -> Figure:
    """Curves over kappa, and the cat at some of them."""
    rows, side = result["rows"], result["side"]
    kappas = [row["kappa"] for row in rows]
    with figure_style():
        figure = Figure(figsize=(9.0, 6.4), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1.0))
        above, below = halves
        axes = above.subplots()
        for core, colour, marker in zip(CORES, COLOURS, MARKERS, strict=False):
            mean, low, high = ([row[core][part] for row in rows] for part in ("mean", "low", "high"))
            axes.plot(kappas, mean, color=colour, marker=marker, markersize=4, label=IN_WORDS[core])
            axes.fill_between(kappas, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set(
            xscale="log", ylim=(-0.05, 1.05), ylabel="structural similarity (SSIM)",
            xlabel=f"kappa: how often the core stands on the diagonal of M (3x{side}x{side} images)",
            title="How much of a picture the eye still sees after morphing",
        )  # fmt: skip
        ticks = [tick for tick in (1, 10, 100, 1000) if tick <= kappas[-1]]
        axes.set_xticks(ticks, labels=[f"{tick:,}" for tick in ticks])
        axes.legend(title="elements of the core", alignment="left")
        chosen = [*_chosen(kappas)]
        grid = below.subplots(2, 1 + len(chosen))
        for line, core in zip(grid, (UNIFORM, "orthogonal"), strict=True):
            _strip(line, core, side, chosen)
        below.supxlabel(
            f"Mean over {len(result['photographs'])} photographs and {result['seeds']} keys; bands show "
            "the least and the largest. Above: core between 0 and 1; below: orthogonal.",
            fontsize=8,
        )
    return figure


def _strip(line: Sequence[Any], core: str, side: int, kappas: Sequence[int]) -> None:
    """The cat, and the same morphed with some kappas."""
    plain, shape = _plain(side)[:1], (3, side, side)
    show_image(line[0], stretched(plain[0]), "plain" if core == UNIFORM else "")
    for axes, kappa in zip(line[1:], kappas, strict=True):
        morphed = morphing(core, shape, kappa, 0).morph(plain)[0]
        title = f"kappa = {kappa:,}" if core == UNIFORM else ""
        show_image(axes, stretched(morphed), title, f"SSIM {likeness(plain[0], morphed):.2f}")


def _chosen(kappas: Sequence[int]) -> Iterator[int]:
    """Some of them, evenly from the first to the last."""
    for place in np.linspace(0, len(kappas) - 1, min(SHOWN, len(kappas))):
        yield kappas[round(place)]


def _plain(side: int) -> Array:
    """Photographs as plain data, the cat first."""
    pixels = [photograph(name, side) for name in (CAT, *(name for name in SQUARES if name != CAT))]
    return np.concatenate([own_normalisation(one).apply(one[np.newaxis]) for one in pixels])


EXPERIMENT = Experiment(
    summary="how much of a picture the eye still sees, for every kappa",
    measure=measure,
    report=report,
    drawings={"": Drawing(draw, ALT)},
    presets=("cpu", "tiny"),
    takes=("seeds",),
)
