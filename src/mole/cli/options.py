"""Options and arguments that several commands have, each described once.

The same thing has the same name in every command. What a command works on is its argument, and all else
an option. A choice is a `Literal` of the library: typer refuses other values.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from mole.cli.wrong_calls import CallError
from mole.errors import MoleError
from mole.limits import MAX_CLASSES, MAX_VIEWS
from mole.scheme.shapes import Shape, check_shape
from mole.sources.preparation import MODES, RESIZES, Mode, Resize
from mole.sources.reading import Bits, Window
from mole.sources.source import Source


def choices(values: Iterable[str]) -> str:
    """What can be said for an option, as its help shows it.

    >>> choices(["crop", "stretch"])
    'crop|stretch'
    """
    return "|".join(values)


DataArgument = Annotated[str, typer.Argument(metavar="DATA", help="Your data: a folder, a file or a URL.")]
DeliveryArgument = Annotated[str, typer.Argument(metavar="DELIVERY", help="A delivery: a folder or a URL.")]
CheckpointOption = Annotated[
    Path, typer.Option("--checkpoint", metavar="FILE", help="A checkpoint that `mole train` wrote.")
]
KeyOption = Annotated[Path, typer.Option("--key", metavar="FILE", help="Your key.")]
LayerOption = Annotated[Path, typer.Option("--layer", metavar="FILE", help="The developer's first layer.")]
ClassesOption = Annotated[
    int,
    typer.Option(
        metavar="N", help="Number of classes, for a network that has to know.", min=2, max=MAX_CLASSES
    ),
]
MeanOption = Annotated[
    str | None,
    typer.Option(metavar="NUMBERS", help="Mean of each channel, such as 0.49,0.48,0.45; or one for all."),
]
StdOption = Annotated[
    str | None, typer.Option(metavar="NUMBERS", help="Standard deviation of each channel; or one for all.")
]
BatchSizeOption = Annotated[int, typer.Option(metavar="N", help="Rows at a time.", min=1, max=1 << 24)]
DeviceOption = Annotated[str | None, typer.Option(metavar="NAME", help="Such as cuda; otherwise the CPU.")]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Replace the output if it is there already.")
]
IdentityOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="An age identity file or SSH private key, to open what was encrypted for its recipient. "
        "Repeatable.",
    ),
]
LayerSignerOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Refuse a first layer that this public key, or file of allowed signers, did not sign.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ModeOption = Annotated[
    Mode | None, typer.Option(metavar=choices(MODES), help="Convert images to grey or to colour.")
]
NetworkOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="module:factory of a network of your own; built-in ones are known by name."
    ),
]
PassphraseFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File whose first line is the key's passphrase; otherwise it is asked for."
    ),
]
RecipientOption = Annotated[
    list[str] | None,
    typer.Option(metavar="RECIPIENT", help="Seal it for this age recipient or SSH public key. Repeatable."),
]
SignOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Sign it with this OpenSSH private key, an Ed25519 one.")
]
SkipBadOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out images that cannot be used, instead of stopping.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no remarks.")]
ResizeOption = Annotated[
    Resize | None,
    typer.Option(
        metavar=choices(RESIZES), help="Bring images to size: fill it and cut the rest, or distort."
    ),
]


def _a_table(value: str | None) -> str | None:
    """Refuse an option in the place of the table: `--labels` alone was an option once."""
    if value is not None and value.startswith("-"):
        raise CallError(
            f"--labels takes a table of labels, and '{value}' is an option: name the file, or give "
            "--folder-labels instead for labels made from the folders of DICOM files"
        )
    return value


LabelsOption = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="A table of labels: CSV, TSV, JSON lines or Parquet.",
        callback=_a_table,
    ),
]
LabelColumnOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The table's column of labels, if not 'label'.")
]
LabelTagOption = Annotated[
    str | None,
    typer.Option(metavar="TAG", help="DICOM: the tag that is the label, BodyPartExamined or (0018,0015)."),
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        metavar="CENTRE,WIDTH",
        help="DICOM: which values become black and white, or none for all of them; by default the first "
        "window of each header.",
    ),
]
ViewsOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Rows for each training image: itself, and others shifted and mirrored by chance. More rows "
        "make attacks easier.",
        min=1,
        max=MAX_VIEWS,
    ),
]
DepthText = Literal["8", "16"]
DepthOption = Annotated[
    DepthText,
    typer.Option(metavar="8|16", help="DICOM: 8 bits per pixel, or 16 to tell values apart more finely."),
]


def parse_window(text: str | None) -> Window | None:
    """A window from text.

    >>> parse_window("40,400"), parse_window("none")
    ((40.0, 400.0), 'none')
    """
    if text is None or text == "none":
        return None if text is None else "none"
    try:
        centre, width = map(float, text.split(","))
    except ValueError:
        raise CallError(f"'{text}' is not a window: write it as 40,400, or as none") from None
    return centre, width


def parse_depth(text: DepthText) -> Bits:
    """8 or 16.

    >>> parse_depth("16")
    16
    """
    return 8 if text == "8" else 16


def refuse_for_others(sources: Iterable[Source], window: str | None, depth: DepthText) -> None:
    """Refuse what is said of DICOM files where none of the sources has any: it would mean nothing."""
    if (window is not None or depth != "8") and all(source.kind != "DICOM" for source in sources):
        raise CallError("--window and --depth are for DICOM files, and there are none here: leave them out")


def parse_shape(text: str) -> Shape:
    """A shape from text.

    >>> parse_shape("3x32x32")
    (3, 32, 32)
    """
    try:
        return check_shape(tuple(int(side) for side in text.split("x")))
    except (ValueError, MoleError):
        raise CallError(f"'{text}' is not a shape: write it as 3x32x32") from None
