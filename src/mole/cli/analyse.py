"""`mole analyse`: the paper's bounds and overheads for any first layer, published and counted."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from mole.analysis import PRESETS, Figure, LayerSizes, Setting, TileSizes, figures_of
from mole.cli.options import ClassesOption, JsonOption, QuietOption, parse_shape
from mole.cli.terminal import say, show, warn
from mole.cli.wrong_calls import CallError
from mole.exchange.layer_files import load_first_layer
from mole.quantities import size_text
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_sizes import too_large
from mole.scheme.shapes import Shape

LARGEST = 1 << 31  # beyond any layer, and well inside of what a float can hold squared

TILES = (
    "tiles hide images from the eye only: one core is used in every tile, and who compares tiles need not "
    "guess it"
)


def analyse(
    layer: Annotated[Path | None, typer.Option(metavar="FILE", help="The developer's first layer.")] = None,
    shape: Annotated[
        str | None, typer.Option(metavar="SHAPE", help="Or: the shape of a sample, such as 3x32x32.")
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --shape: output channels.", min=1, max=LARGEST),
    ] = None,
    kernel: Annotated[
        int,
        typer.Option(metavar="N", help="With --channels: side of the kernel.", min=1, max=LARGEST),
    ] = 3,
    stride: Annotated[
        int, typer.Option(metavar="N", help="With --channels: pixels from step to step.", min=1)
    ] = 1,
    padding: Annotated[
        int,
        typer.Option(metavar="N", help="With --channels: zeros around the image.", min=0, max=LARGEST),
    ] = 0,
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Or one of the paper's: {' or '.join(PRESETS)}."),
    ] = None,
    kappa: Annotated[
        int, typer.Option(metavar="N", help="How many times the core stands on the diagonal.")
    ] = 1,
    tile: Annotated[
        int | None,
        typer.Option(metavar="N", help="Or: morph square tiles of N pixels.", min=1, max=LARGEST),
    ] = None,
    sigma: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="Relative error up to which images count as recovered."),
    ] = 0.5,
    network: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Count this network: module:factory, or a built-in network."),
    ] = None,
    classes: ClassesOption = 10,
    network_macs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Or: its multiplications for an image.", min=1),
    ] = None,
    images: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many images are handed over.", min=1, max=LARGEST),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what the paper promises for a first layer, what it costs, and what counting gives.

    These are counts of guesses and multiplications. They do not say what an attack can do.
    """
    if sum(given is not None for given in (layer, shape, preset)) != 1:
        raise CallError("say which first layer: give one of --layer, --shape and --preset")
    if channels is not None and shape is None:
        raise CallError("--channels belongs to --shape: leave it out")
    if network is not None and (network_macs is not None or preset is not None):
        raise CallError("--network, --network-macs and --preset each say what the network is: give one")
    if tile is not None and kappa != 1:
        raise CallError("--tile says how many blocks there are: leave out --kappa")
    if preset is not None:
        start = _of_preset(preset, tile)
    else:
        start = _of_layer(layer, shape, channels, kernel, stride, padding, network, classes, tile)
    setting = replace(
        start,
        kappa=start.kappa if tile is not None else kappa,
        sigma=sigma,
        network_macs=start.network_macs if network_macs is None else network_macs,
        images=start.images if images is None else images,
    )
    known = next((known for known in PRESETS.values() if known.setting == setting), None)
    figures = figures_of(setting) if known is None else known.figures()
    needed = 4 * (setting.layer.stored_numbers if setting.tiles is None else setting.tiles.layer_elements)
    if as_json:
        show({"setting": asdict(setting), "figures": [asdict(figure) for figure in figures]}, as_json=True)
    else:
        _print(*_table(figures))
        say(f"The augmented layer takes {size_text(needed)} in 32 bits.", quiet=quiet)
    if setting.tiles is not None:
        warn(TILES, quiet=quiet)
    elif reason := too_large(needed):
        warn(f"this first layer needs a key with tiles: {reason}", quiet=quiet)


def _of_preset(name: str, tile: int | None) -> Setting:
    if name not in PRESETS:
        raise CallError(f"there is no preset '{name}': use {' or '.join(PRESETS)}")
    return PRESETS[name].setting if tile is None else PRESETS[name].in_tiles(tile)


def _of_layer(
    path: Path | None,
    shape: str | None,
    channels: int | None,
    kernel: int,
    stride: int,
    padding: int,
    network: str | None,
    classes: int,
    tile: int | None,
) -> Setting:
    """The first layer from its file, its sizes or a network; the network's cost, if there is one."""
    tiles = None
    if path is None and channels is not None:
        sample = parse_shape(shape or "")
        sides: dict[str, Any] = {
            "input_shape": sample, "channels": channels, "kernel": kernel, "stride": stride,
            "padding": padding,
        }  # fmt: skip
        sizes = LayerSizes.conv(**sides)
        tiles = None if tile is None else TileSizes.conv(**sides, tile=tile)
    else:
        first = _first_layer(path, shape, network, classes)
        sample, sizes = first.input_shape, LayerSizes.of(first)
        tiles = None if tile is None else TileSizes.of(first, tile)
    macs = None if network is None else _count(network, sample, classes)
    return Setting(layer=sizes, kappa=1 if tiles is None else tiles.tiles, network_macs=macs, tiles=tiles)


def _first_layer(path: Path | None, shape: str | None, network: str | None, classes: int) -> FirstLayer:
    if path is not None:
        return load_first_layer(path)
    if network is None:
        raise CallError("--shape is not enough: add --channels, or --network to find the layer in")
    from mole.torch import export, models  # noqa: PLC0415  (an extra)

    sample = parse_shape(shape or "")
    return export.export_first_layer(models.build_model(network, sample, classes), sample)


def _count(name: str, shape: Shape, classes: int) -> int:
    from mole.torch import macs, models  # noqa: PLC0415  (an extra)

    return macs.count_macs(models.build_model(name, shape, classes), shape)


def _table(figures: Sequence[Figure]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows; where the paper prints nothing, 'as published' is its formula's value."""
    headings = ["what", "as published", "as counted", "remark"]
    rows = [[f.what, f.words("by_formula"), f.words("counted"), f.remark] for f in figures]
    if any(figure.published is not None for figure in figures):
        headings.insert(2, "by its formula")
        rows = [[row[0], f.words("published"), *row[1:]] for f, row in zip(figures, rows, strict=True)]
    return headings, rows


def _print(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        _print_wrapped(headings, rows)
        return
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def _print_wrapped(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """As wide as the terminal is, with a gap between rows that take several lines."""
    table = Table(*headings, box=None, pad_edge=False, padding=(0, 2, 1, 0))
    for column in table.columns[1:-1]:
        column.no_wrap = True
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
