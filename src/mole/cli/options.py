"""Options and arguments that several commands have, each described once.

A choice is a `Literal` of the library: typer lists its values in the help, and refuses others.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mole.cli.terminal import CallError
from mole.errors import MoleError
from mole.limits import MAX_CLASSES
from mole.scheme.shapes import Shape, check_shape
from mole.sources.preparation import Mode, Resize
from mole.sources.reading import Bits, Window

DeliveryArgument = Annotated[str, typer.Argument(help="A delivery: a folder or a URL.")]
LayerArgument = Annotated[Path, typer.Argument(help="The developer's first layer.")]
ClassesOption = Annotated[
    int, typer.Option(help="Number of classes, for a network that has to know.", min=2, max=MAX_CLASSES)
]
BatchSizeOption = Annotated[int, typer.Option(help="Rows at a time.", min=1, max=1 << 24)]
DeviceOption = Annotated[str | None, typer.Option(help="Such as cuda; otherwise the CPU.")]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Replace the output if it is there already.")
]
IdentityOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="age identity file or SSH private key, for what was encrypted for its recipient. Repeatable."
    ),
]
LayerSignerOption = Annotated[
    Path | None,
    typer.Option(
        help="Refuse a first layer that this public key, or file of allowed signers, did not sign."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ModeOption = Annotated[Mode | None, typer.Option(help="Convert images to grey or to colour.")]
NetworkOption = Annotated[
    str | None,
    typer.Option(help="module:factory of the network, for one of your own; built-in ones are known."),
]
PassphraseFileOption = Annotated[
    Path | None,
    typer.Option(help="File whose first line is the key's passphrase; otherwise it is asked for."),
]
RecipientOption = Annotated[
    list[str] | None,
    typer.Option(help="Seal it for this age recipient or ssh-ed25519 public key. Repeatable."),
]
SignOption = Annotated[
    Path | None, typer.Option(help="Sign it with this OpenSSH private key, an Ed25519 one.")
]
SkipBadOption = Annotated[bool, typer.Option(help="Leave out unreadable images instead of stopping.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no remarks.")]
ResizeOption = Annotated[
    Resize | None, typer.Option(help="Bring images to size: fill it and cut the rest, or distort.")
]


LabelsOption = Annotated[
    str | None,
    typer.Option("--labels", help="A table of the labels of your files: CSV, TSV, JSON lines or Parquet."),
]
LabelColumnOption = Annotated[
    str | None, typer.Option(help="The column of the table that has the labels, if it is not 'label'.")
]
LabelTagOption = Annotated[
    str | None, typer.Option(help="DICOM: the tag that is the label, BodyPartExamined or (0018,0015).")
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        help="DICOM: which values become black and white, CENTRE,WIDTH or none for all; by default the "
        "first window of each header."
    ),
]
BitsText = Literal["8", "16"]
BitsOption = Annotated[
    BitsText, typer.Option(help="DICOM: 8 bits a pixel, or 16 to tell values apart more finely.")
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
        raise CallError(f"'{text}' is no window: write it as 40,400, or as none") from None
    return centre, width


def parse_bits(text: BitsText) -> Bits:
    """8 or 16.

    >>> parse_bits("16")
    16
    """
    return 8 if text == "8" else 16


def parse_shape(text: str) -> Shape:
    """A shape from text.

    >>> parse_shape("3x32x32")
    (3, 32, 32)
    """
    try:
        return check_shape(tuple(int(side) for side in text.split("x")))
    except (ValueError, MoleError):
        raise CallError(f"'{text}' is no shape: write it as 3x32x32") from None
