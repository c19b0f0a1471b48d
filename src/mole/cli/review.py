"""`mole review`: what a first layer would let the developer see."""

from pathlib import Path
from typing import Annotated

import typer

from mole.cli.named_files import check_output
from mole.cli.options import (
    DataArgument,
    DepthOption,
    ForceOption,
    JsonOption,
    LayerOption,
    LayerSignerOption,
    ModeOption,
    QuietOption,
    ResizeOption,
    SkipBadOption,
    WindowOption,
    parse_depth,
    parse_window,
)
from mole.cli.terminal import progress_bar, say, show, warn, warn_of
from mole.exchange.signatures import load_signed_layer
from mole.provider.copying import copies_of
from mole.provider.picture_sheet import save_sheet
from mole.provider.review import Review, contact_sheet, review_layer, told_of_copies
from mole.scheme.layer_sizes import augmented_bytes, too_large
from mole.scheme.shapes import shape_text
from mole.sources.inspection import inspect
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation


def review(
    data: DataArgument,
    layer: LayerOption,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The picture to write.")] = Path(
        "review.png"
    ),
    samples: Annotated[int, typer.Option(metavar="N", help="How many images it shows.", min=1, max=64)] = 6,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    window: WindowOption = None,
    depth: DepthOption = "8",
    skip_bad: SkipBadOption = False,
    layer_signer: LayerSignerOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what a layer's features give away, before you augment it. Nothing leaves your machine.

    Every image is checked, and a few are drawn.
    """
    check_output(out, force=True)  # a place at all; what lies there matters where there is a picture
    first, signature = load_signed_layer(layer, layer_signer)
    copies = copies_of(first)
    for problem in told_of_copies(copies):  # first, and even if quiet: images that cannot be used end it
        say(problem)
    has_picture = len(first.input_shape) == 3
    if has_picture:
        check_output(out, force=force)
    source = open_source(data, labels=False, window=parse_window(window), bits=parse_depth(depth))
    preparation = Preparation.for_layer(first, mode=mode, resize=resize)
    if reason := too_large(augmented_bytes(first)):
        warn(
            f"a first layer for {shape_text(first.input_shape)} needs a key with tiles: {reason}",
            quiet=quiet,
        )
    with progress_bar("Looking", quiet=quiet) as progress:
        looked = inspect(source, preparation, progress=progress)
    looked.refuse(skip_bad=skip_bad)
    if (left_out := looked.error(skipped=True)) is not None:
        warn_of(left_out, quiet=quiet)
    plain = preparation.samples(source, samples, skip_bad=skip_bad)
    found = review_layer(first, plain, copies)
    if has_picture:
        save_sheet(out, contact_sheet(found, plain))
    for finding in found.told_of_features:
        say(finding, quiet=quiet)
    show(
        {
            "picture": str(out) if has_picture else None,
            "signature": signature,
            "images": looked.samples,
            "images that cannot be used": looked.bad,
            "augmented layer bytes": augmented_bytes(first),
            "copies pixels": bool(found.copies.words),
            "rebuilt correlation": round(found.correlation, 4),
            "best map correlation": _best_map(found, as_json=as_json),
            "numbers in a patch": found.patch,
            "of these, pinned down": found.rank,
        },
        as_json=as_json,
    )


def _best_map(found: Review, *, as_json: bool) -> float | str | None:
    """The figure; people are told why there is none, and machines get null."""
    if found.looks_like_image is not None:
        return round(found.looks_like_image, 4)
    return None if as_json else "not measured: features of this layer are not pictures"
