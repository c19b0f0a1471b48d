"""`mole calibrate`: a head's probabilities made right on labelled images of the provider's own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.fitted_head import percent
from mole.cli.named_files import check_output
from mole.cli.options import (
    DataArgument,
    DepthOption,
    ForceOption,
    JsonOption,
    LabelColumnOption,
    LabelsOption,
    LabelTagOption,
    ModeOption,
    QuietOption,
    ResizeOption,
    SkipBadOption,
    WindowOption,
    parse_depth,
    parse_window,
)
from mole.cli.terminal import note, progress_bar, show, warnings_said
from mole.protection.head_file import write_head
from mole.provider.at_home import AtHome
from mole.provider.home_calibration import calibrate as library
from mole.scores import Score
from mole.sources.opening import open_source


def calibrate(
    data: DataArgument,
    front: Annotated[Path, typer.Option(metavar="FILE", help="The developer's front, as ONNX.")],
    head: Annotated[Path, typer.Option(metavar="FILE", help="A head that `mole export-head` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The head to write.")] = Path(
        "calibrated.onnx"
    ),
    adapt: Annotated[
        bool,
        typer.Option(
            "--adapt",
            help="Correct the head's weights too, if images that were held out show that it helps. Keep "
            "such a head at home: it has learned from clean images.",
        ),
    ] = False,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    skip_bad: SkipBadOption = False,
    labels: LabelsOption = None,
    label_column: LabelColumnOption = None,
    label_tag: LabelTagOption = None,
    window: WindowOption = None,
    depth: DepthOption = "8",
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a head's probabilities right on labelled images of your own, at home.

    One factor, an intercept for each class and, for two classes, a threshold are fitted; with --adapt, a
    correction of the weights as well, which needs a few hundred images. The scores afterwards are of
    images that were held out: each fifth is scored by what the others decided.
    """
    check_output(out, force=force)
    source = open_source(
        data, labels=labels, label_column=label_column, label_tag=label_tag, window=parse_window(window),
        bits=parse_depth(depth),
    )  # fmt: skip
    at_home = AtHome.open(front, head, mode=mode, resize=resize, skip_bad=skip_bad)
    with warnings_said(quiet=quiet), progress_bar("Predicting", quiet=quiet) as progress:
        found = library(at_home, source, adapt=adapt, progress=progress)
    write_head(out, found.home)
    facts: dict[str, Any] = {"head": str(out), "images": found.before.rows}
    if adapt:
        facts["adapted"] = found.is_adapted
    for name, score in (("before", found.before), ("after", found.after)):
        facts |= {f"{one} {name}": value for one, value in _figures(score, as_json=as_json).items()}
    if found.home.head.classes == 2:
        facts["threshold"] = round(found.home.threshold, 4)
    show(facts, as_json=as_json)
    if found.is_adapted:
        note(
            f"{out} has learned from clean images: keep it at home. The scores above are of images that "
            "were held out; on all that it learned from, the head looks better than it is",
            quiet=quiet,
        )
    elif adapt:
        note("weights stay as they were: held-out images do not show that a correction helps", quiet=quiet)


def _figures(score: Score, *, as_json: bool) -> dict[str, Any]:
    return {
        "accuracy": round(score.accuracy, 4) if as_json else percent(score.accuracy),
        "auc": None if score.auc is None else round(score.auc, 4),
        "loss": round(score.loss, 4),
    }
