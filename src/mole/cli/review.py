"""`mole review`: what a first layer would let the developer see."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mole.cli.output import JsonOption, QuietOption, say, show
from mole.errors import ParameterError
from mole.files.beside import written_beside
from mole.files.layers import load_first_layer


def review(
    layer: Annotated[Path, typer.Argument(help="The developer's first layer.")],
    data: Annotated[str, typer.Option(help="Your data; a few images of it are looked at.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A picture to write.")] = Path("review.png"),
    samples: Annotated[int, typer.Option(help="How many images.", min=1, max=64)] = 6,
    mode: Annotated[str | None, typer.Option(help="Convert images to L or RGB.")] = None,
    resize: Annotated[str | None, typer.Option(help="Bring images to size: crop or stretch.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what a layer's features give away, before you augment it. Nothing leaves your machine.

    Example: mole review first-layer.safetensors --data photos/ --out review.png
    """
    from PIL import Image  # noqa: PLC0415  (loaded when needed)

    from mole.data.opening import open_source  # noqa: PLC0415
    from mole.data.preparation import Preparation  # noqa: PLC0415
    from mole.data.source import main_split  # noqa: PLC0415
    from mole.review import contact_sheet, review_layer  # noqa: PLC0415

    first = load_first_layer(layer)
    if len(first.output_shape) != 3 or len(first.input_shape) != 3:
        raise ParameterError(f"{layer} is a {first.kind} layer, and only those on images can be shown")
    split = main_split(open_source(data))
    preparation = Preparation.for_layer(first, mode=mode, resize=resize)
    indices = np.linspace(0, len(split) - 1, min(samples, len(split))).astype(int).tolist()
    plain = np.concatenate(
        [preparation.plain(preparation.shape(split.read(i))[np.newaxis]) for i in indices]
    )
    found = review_layer(first, plain)
    picture = Image.fromarray((255 * contact_sheet(found, plain)).astype(np.uint8))
    factor = max(1, 96 // first.input_shape[1])
    try:
        with written_beside(out) as temporary:
            picture.resize(
                (picture.width * factor, picture.height * factor), Image.Resampling.NEAREST
            ).save(temporary, format="PNG")
    except OSError as error:
        raise ParameterError(f"{out} can not be written: {error.strerror or error}") from None
    for finding in found.findings:
        say(finding, quiet=quiet)
    show(
        {
            "picture": str(out),
            "hostile": bool(found.copying),
            "rebuilt correlation": round(found.correlation, 4),
            "best map correlation": None
            if found.looks_like_image is None
            else round(found.looks_like_image, 4),
            "rank": found.rank,
            "patch": found.patch,
        },
        as_json=as_json,
    )
