"""Options and arguments that several commands have, each described once.

A choice is a `Literal` of the library: typer lists its values in the help, and refuses others.
"""

from pathlib import Path
from typing import Annotated

import typer

from mole.cli.terminal import CallError
from mole.errors import MoleError
from mole.limits import MAX_CLASSES
from mole.scheme.shapes import Shape, check_shape
from mole.sources.preparation import Mode, Resize

DeliveryArgument = Annotated[str, typer.Argument(help="A delivery: a folder or a URL.")]
LayerArgument = Annotated[Path, typer.Argument(help="The developer's first layer.")]
ClassesOption = Annotated[
    int, typer.Option(help="Number of classes, for a network that has to know.", min=2, max=MAX_CLASSES)
]
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


def parse_shape(text: str) -> Shape:
    """A shape from text.

    >>> parse_shape("3x32x32")
    (3, 32, 32)
    """
    try:
        return check_shape(tuple(int(side) for side in text.split("x")))
    except (ValueError, MoleError):
        raise CallError(f"'{text}' is no shape: write it as 3x32x32") from None
