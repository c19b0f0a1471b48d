"""`mole experiment`: what protection costs in accuracy, measured on images. Loads PyTorch."""

import json
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import typer

from mole.cli.named_files import check_input, check_output
from mole.cli.options import ForceOption, JsonOption, QuietOption, choices
from mole.cli.terminal import progress_bar, say, show, when_interrupted
from mole.cli.wrong_calls import CallError
from mole.experiments import feature_store, frontier, frontier_report, image_sets
from mole.storage.atomic import new_file

Experiment = Literal["frontier"]


def experiment(
    name: Annotated[
        Experiment,
        typer.Argument(
            metavar=choices(["frontier"]), help="Which: accuracy against bits, for four fronts."
        ),
    ],
    images: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DATA",
            help="Images with labels, in splits 'train' and 'test'. Repeatable; by default the "
            "Fashion-MNIST that ships with the package.",
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Other images, from another source, to fit fronts on."),
    ] = None,
    front: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A front of your own, in the place of EfficientNet-Lite0."),
    ] = None,
    draws: Annotated[int, typer.Option(metavar="N", help="How often noise is drawn.", min=1, max=1000)] = 3,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep fronts and features here, and go on from what is there."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Little of everything, to see that it works.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The JSON to write; a drawing beside it.")
    ] = Path("frontier.json"),
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure what protection costs in accuracy: learn from noisy features, be tested on clean ones.

    Four fronts are compared at several numbers of bits: the pixels themselves, a first layer, a small
    network trained on a fifth of the images, and a network trained on ImageNet, or one of your own.
    """
    if (images is None) != (public is None):
        raise CallError("--images and --public go together: give both, or neither for the bundled images")
    drawing = out.with_suffix(".svg")
    check_input(front)
    for path in (out, drawing):
        check_output(path, force=force)
    if images is None or public is None:
        sources = image_sets.bundled_sources()
        sets, others = [image_sets.ImageSet.of(sources["private"], "Fashion-MNIST")], sources["public"]
    else:
        sets = [image_sets.ImageSet.of(image_sets.opened(path), path.stem, str(path)) for path in images]
        others = image_sets.opened(public)
    effort = frontier.QUICK if quick else frontier.Effort(draws=draws)
    if quick:
        sets = [one.first(frontier.QUICK_IMAGES, frontier.QUICK_TESTS) for one in sets]
    with ExitStack() as stack:
        kept = cache or Path(stack.enter_context(TemporaryDirectory()))
        stack.enter_context(when_interrupted(_what_is_kept(cache)))
        progress = stack.enter_context(progress_bar("Features", quiet=quiet))
        result = frontier.frontier(
            sets, others, feature_store.FeatureStore(kept, progress), front=front, effort=effort,
            with_large=not quick, say=lambda text: say(text, quiet=quiet),
        )  # fmt: skip
    with new_file(out) as file:
        file.write_text(json.dumps(result, indent=1) + "\n")
    frontier_report.draw(result, drawing)
    if as_json:
        show(result, as_json=True)
        return
    typer.echo(frontier_report.table(result))


def _what_is_kept(cache: Path | None) -> str:
    if cache is None:
        return "nothing was written; call again to start over, and with --cache to keep features"
    return f"features that are finished are in {cache}; the same command goes on from there"
