"""`mole front make`: a front for protected deliveries, from a network and public images."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from mole.cli.export_layer import parse_normalisation
from mole.cli.named_files import check_input, check_output
from mole.cli.options import (
    ClassesOption,
    ForceOption,
    JsonOption,
    MeanOption,
    ModeOption,
    QuietOption,
    ResizeOption,
    SkipBadOption,
    StdOption,
    parse_shape,
)
from mole.cli.terminal import progress_bar, show, warnings_said
from mole.cli.wrong_calls import CallError
from mole.errors import ParameterError
from mole.scheme.shapes import Array
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.sources.source import Labels, Source, main_split

MOST_IMAGES = 1 << 24
Action = Literal["make"]


def front(
    action: Annotated[Action, typer.Argument(metavar="make", help="What to do: make a front.")],
    network: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="module:factory of a network that gives features, or a built-in network."
        ),
    ],
    input_shape: Annotated[
        str, typer.Option(metavar="SHAPE", help="Shape of an image, channels first, such as 3x224x224.")
    ],
    public: Annotated[
        str,
        typer.Option(
            metavar="DATA", help="Public images to fit it on: a folder, a file or a URL. They go nowhere."
        ),
    ],
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights to load into the network.")
    ] = None,
    without_last: Annotated[
        bool,
        typer.Option(
            "--without-last", help="Leave out the network's last layer: for a classifier, which is Linear."
        ),
    ] = False,
    dim: Annotated[
        int, typer.Option(metavar="N", help="How many features it gives.", min=1, max=1 << 20)
    ] = 128,
    by_class: Annotated[
        bool,
        typer.Option(
            "--by-class",
            help="Public images have classes, any ones: make images of one class alike.",
        ),
    ] = False,
    mirrored: Annotated[
        bool,
        typer.Option(
            "--mirrored", help="Average features over an image and its mirror image, in twice the time."
        ),
    ] = False,
    images: Annotated[
        int, typer.Option(metavar="N", help="How many public images at most.", min=2, max=MOST_IMAGES)
    ] = 5000,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    classes: ClassesOption = 10,
    skip_bad: SkipBadOption = False,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "front.onnx"
    ),
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a front: an ONNX file that turns images into a few features, for protected deliveries.

    The network's features are pooled, and projected to their principal components on public images of
    the kind that the provider has. A classifier's last layer knows only its own classes: leave it out.
    """
    if by_class and skip_bad:
        raise CallError("--by-class needs all images, so that their classes are known: no --skip-bad")
    shape = parse_shape(input_shape)
    normalisation = parse_normalisation(mean, std, shape[0])
    check_output(out, force=force)
    check_input(weights)
    preparation = Preparation(shape, normalisation, mode, resize, "front")
    samples = PublicImages(
        preparation, open_source(public, labels=None if by_class else False), images, skip_bad=skip_bad
    )
    labels = samples.labels() if by_class else None
    if by_class and labels is None:
        raise ParameterError(f"{public} has no classes: give images with labels, or leave out --by-class")
    if len(samples) <= dim:
        raise ParameterError(
            f"{public} has {len(samples)} images, and {dim} features need more than {dim}: give more, or "
            "ask for fewer features with --dim"
        )
    from mole.torch import front, models  # noqa: PLC0415  (an extra)

    with warnings_said(quiet=quiet), progress_bar("Looking at public images", quiet=quiet) as progress:
        model = models.build_model(network, shape, classes, weights)
        if without_last:
            model = front.without_last(model, shape)
        made = front.make_front(
            model, samples, out, dimensions=dim, labels=labels, mirrored=mirrored,
            normalisation=normalisation, progress=progress,
        )  # fmt: skip
    show(
        {
            "front": str(out),
            "input shape": made.input_shape,
            "features": made.features,
            "public images": len(samples),
            "bytes": out.stat().st_size,
            "digest": made.digest,
        },
        as_json=as_json,
    )


class PublicImages:
    """Images of a source as the network takes them, read when they are asked for."""

    def __init__(self, preparation: Preparation, source: Source, most: int, *, skip_bad: bool) -> None:
        self._preparation, self._split, self._skip_bad = preparation, main_split(source), skip_bad
        count = min(most, len(self._split))
        self._indices = np.linspace(0, len(self._split) - 1, count).astype(int).tolist()
        self.shape = (count, *preparation.input_shape)

    def __len__(self) -> int:
        return len(self._indices)

    def labels(self) -> Labels | None:
        """Their classes; None where there are none."""
        known = self._split.labels
        return None if known is None else np.asarray(known)[self._indices]

    def __getitem__(self, part: slice) -> Array:
        """Some of them; fewer, where bad ones are left out."""
        return self._preparation.plain_samples(self._split, self._indices[part], skip_bad=self._skip_bad)
