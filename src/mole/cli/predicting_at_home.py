"""The half of `mole predict` that is the provider's: front and head on its own images."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from mole.cli.options import DepthText, parse_depth, parse_window
from mole.cli.wrong_calls import CallError
from mole.errors import FileError
from mole.progress import Progress
from mole.provider.at_home import AtHome
from mole.sources.opening import open_source
from mole.sources.preparation import Mode, Resize
from mole.storage.atomic import new_file, reason_of

HomeFrontOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="For images of your own: the developer's front, as ONNX."),
]
HomeHeadOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --front: a head that `mole export-head` wrote."),
]


def is_at_home(
    front: Path | None, head: Path | None, of_requests: dict[str, Any], of_images: dict[str, Any]
) -> bool:
    """Which of the two ways is meant: the options of one do not go with the other.

    Args:
        front: the front, if one is given.
        head: the head, if one is given.
        of_requests: what is said of morphed requests, by option.
        of_images: what is said of images, by option.
    """
    if (front is None) != (head is None):
        given, missing = ("--front", "--head") if head is None else ("--head", "--front")
        raise CallError(f"{given} goes with {missing}, for images of your own: give both, or neither")
    others = of_requests if front is not None else of_images
    said = [option for option, value in others.items() if value not in (None, False)]
    if said and front is not None:
        raise CallError(
            f"{said[0]} is for morphed requests, and --front and --head are for images of your own: leave "
            "out one or the other"
        )
    if said:
        raise CallError(f"{said[0]} is for images of your own: add --front and --head, or leave it out")
    return front is not None


def predict_at_home(
    data: str,
    front: Path,
    head: Path,
    out: Path,
    *,
    split: str | None,
    mode: Mode | None,
    resize: Resize | None,
    skip_bad: bool,
    window: str | None,
    depth: DepthText,
    progress: Progress,
) -> dict[str, Any]:
    """Write predictions of one's own images, and what there is to tell of them."""
    at_home = AtHome.open(front, head, mode=mode, resize=resize, skip_bad=skip_bad)
    source = open_source(data, window=parse_window(window), bits=parse_depth(depth))
    return write_answers(at_home.predict(source, split=split, progress=progress), out)


def write_answers(answers: pa.Table, out: Path) -> dict[str, Any]:
    """Write a table of answers, and what there is to tell of it."""
    try:
        with new_file(out) as temporary:
            pq.write_table(answers, temporary)
    except OSError as error:
        raise FileError(f"{out} cannot be written: {reason_of(error)}") from None
    facts: dict[str, Any] = {"predictions": str(out), "rows": answers.num_rows}
    if "label" in answers.column_names:
        labels = answers["label"].to_numpy()
        right = answers["prediction"].to_numpy()[labels >= 0] == labels[labels >= 0]
        facts["accuracy"] = float(right.mean()) if len(right) else None
    return facts
