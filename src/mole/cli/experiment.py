"""`mole experiment`: the measurements of the documents, and the paper's, on your machine. Loads PyTorch."""

from pathlib import Path
from typing import Annotated

import typer

from mole.cli.named_files import check_folder, check_input, check_output
from mole.cli.options import ForceOption, JsonOption, QuietOption, choices
from mole.cli.terminal import progress_bar, say, show, when_interrupted
from mole.cli.wrong_calls import CallError
from mole.errors import FileError, ParameterError
from mole.experiments import (
    explanations,
    figure_attacks,
    figure_kappa,
    figure_sigma,
    frontier,
    medical,
    table1,
    table2,
)
from mole.experiments.experiment import PRESETS, SEEDS, Experiment, Preset, Request
from mole.experiments.image_sets import ImageSet, bundled_sources, opened
from mole.experiments.pieces import PieceStore
from mole.experiments.results_folder import files_of, run, write_results
from mole.sources.source import Source

EXPERIMENTS: dict[str, Experiment] = {
    "table1": table1.EXPERIMENT,
    "table2": table2.EXPERIMENT,
    "medical": medical.EXPERIMENT,
    "frontier": frontier.EXPERIMENT,
    "figure-kappa": figure_kappa.EXPERIMENT,
    "figure-sigma": figure_sigma.EXPERIMENT,
    "figure-unroll": explanations.UNROLL,
    "figure-diagonal": explanations.DIAGONAL,
    "figure-attacks": figure_attacks.EXPERIMENT,
}


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="; ".join(f"{name}: {one.summary}" for name, one in EXPERIMENTS.items()) + ".",
        ),
    ],
    preset: Annotated[
        Preset,
        typer.Option(
            metavar=choices(PRESETS),
            help="How much is done: what the paper did, what a CPU does in hours, or what shows in seconds "
            "that it works.",
        ),
    ] = "cpu",
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DATA",
            help="Images with labels, in splits 'train' and 'test'. Repeatable; by default the "
            "Fashion-MNIST that ships with the package.",
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Other images, from another source: the developer's own."),
    ] = None,
    front: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A front of your own, in the place of EfficientNet-Lite0."),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What benchmarks/peers.py measured, to compare with."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N", help=f"How often chance is given another try; by default {SEEDS}.", min=1, max=1000
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep what is finished here; by default in 'cache' beside the results."
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where JSON, Markdown and drawings go."),
    ] = Path("results"),
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure what the documents say, and what the paper says, on images of your own.

    What is finished is kept, and the same command goes on from there after an interruption. It may be
    deleted when the results are written; with more seeds the next call does those alone.
    """
    chosen = _chosen(name, preset)
    given = {"data": data, "public": public, "front": front, "seeds": seeds, "peers": peers}
    _refuse_unused(name, chosen, [option for option, value in given.items() if value is not None])
    if chosen.needs_public and (data is None) != (public is None):
        raise CallError("--data and --public go together: give both, or neither for the bundled images")
    if data is None and public is not None:
        raise CallError("--public stands beside --data: give both, or neither for the bundled images")
    check_input(front)
    check_input(peers)
    _check_place(out, files_of(out, name, chosen), force=force)
    sets, others = _images(chosen, data, public)
    kept = out / "cache" if cache is None else cache
    with (
        when_interrupted(f"what is finished is in {kept}; the same command goes on from there"),
        progress_bar(name, quiet=quiet) as progress,
    ):
        request = Request(
            preset, PieceStore(kept, progress), sets, others, front, seeds or SEEDS,
            lambda text: say(text, quiet=quiet), progress, peers,
        )  # fmt: skip
        result = run(name, chosen, request)
    write_results(out, name, chosen, result)
    if as_json:
        show(result, as_json=True)
        return
    typer.echo(chosen.report(result))


def _chosen(name: str, preset: Preset) -> Experiment:
    """The experiment of a name, if it has such a preset."""
    if name not in EXPERIMENTS:
        raise CallError(f"there is no experiment '{name}': give one of {', '.join(EXPERIMENTS)}")
    try:
        EXPERIMENTS[name].check(name, preset)
    except ParameterError as error:
        raise CallError(error.message) from None
    return EXPERIMENTS[name]


def _refuse_unused(name: str, chosen: Experiment, given: list[str]) -> None:
    """Refuse an option that would mean nothing."""
    unused = [option for option in given if option not in chosen.takes]
    if unused:
        raise CallError(f"--{unused[0]} means nothing for {name}: leave it out")


def _check_place(out: Path, files: list[Path], *, force: bool) -> None:
    """Refuse a folder that cannot be written, or has these results already, before any work is done."""
    if out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file, and results go into a folder: choose another name")
    if not out.exists():
        check_folder(out)
        return
    *others, last = files
    check_output(last, force=force)
    for file in others:  # without the last one they are what a killed process left
        check_output(file, force=True)


def _images(
    chosen: Experiment, data: list[Path] | None, public: Path | None
) -> tuple[tuple[ImageSet, ...], Source | None]:
    """The images of a call, or those of the package."""
    if "data" not in chosen.takes:
        return (), None
    if data is None:
        sources = bundled_sources()
        return (ImageSet.of(sources["private"], "Fashion-MNIST"),), sources["public"]
    sets = tuple(ImageSet.of(opened(path), path.stem, str(path)) for path in data)
    return sets, None if public is None else opened(public)
