"""`mole review`: what a first layer would let the developer see."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from PIL import Image

from mole.cli.options import (
    BitsOption,
    ForceOption,
    JsonOption,
    LayerArgument,
    LayerSignerOption,
    ModeOption,
    QuietOption,
    ResizeOption,
    WindowOption,
    parse_bits,
    parse_window,
)
from mole.cli.terminal import check_output, say, show
from mole.errors import FileError
from mole.exchange.signatures import load_signed_layer
from mole.provider.review import Review, contact_sheet, review_layer
from mole.scheme.shapes import Array
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.storage.atomic import new_file, reason_of


def review(
    layer: LayerArgument,
    data: Annotated[str, typer.Option(help="Your data; a few images of it are looked at.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="A picture to write, of layers on images.")
    ] = Path("review.png"),
    samples: Annotated[int, typer.Option(help="How many images.", min=1, max=64)] = 6,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    window: WindowOption = None,
    bits: BitsOption = "8",
    layer_signer: LayerSignerOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what a layer's features give away, before you augment it. Nothing leaves your machine."""
    check_output(out, force=force)
    first, signature = load_signed_layer(layer, layer_signer)
    source = open_source(data, labels=False, window=parse_window(window), bits=parse_bits(bits))
    preparation = Preparation.for_layer(first, mode=mode, resize=resize)
    plain = preparation.samples(source, samples)
    found = review_layer(first, plain)
    has_picture = len(first.input_shape) == 3
    if has_picture:
        _draw(found, plain, out)
    for finding in found.findings:
        say(finding, quiet=quiet)
    show(
        {
            "picture": str(out) if has_picture else None,
            "signature": signature,
            "hostile": bool(found.copies.words),
            "rebuilt correlation": round(found.correlation, 4),
            "best map correlation": None
            if found.looks_like_image is None
            else round(found.looks_like_image, 4),
            "rank": found.rank,
            "patch": found.patch,
        },
        as_json=as_json,
    )


def _draw(found: Review, plain: Array, path: Path) -> None:
    """Write the picture, enlarged."""
    picture = Image.fromarray((255 * contact_sheet(found, plain)).astype(np.uint8))
    factor = max(1, 96 // plain.shape[2])
    size = (picture.width * factor, picture.height * factor)
    try:
        with new_file(path) as temporary:
            picture.resize(size, Image.Resampling.NEAREST).save(temporary, format="PNG")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {reason_of(error)}") from None
