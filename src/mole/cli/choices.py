"""Options with a few possible values: typer lists them in the help, and refuses others."""

from enum import Enum, StrEnum
from typing import Annotated

import typer


class Dtype(StrEnum):
    """How morphed values are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


class LayerDtype(StrEnum):
    """How an augmented layer is stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"


class Mode(StrEnum):
    """Colours that images are converted to."""

    L = "L"
    RGB = "RGB"


class Resize(StrEnum):
    """How images are brought to size."""

    CROP = "crop"
    STRETCH = "stretch"


class CoreKind(StrEnum):
    """Kinds of core."""

    ORTHOGONAL = "orthogonal"
    WHITENED = "whitened"
    GAUSSIAN = "gaussian"


class EngineName(StrEnum):
    """Where shards are made."""

    LOCAL = "local"
    RAY = "ray"


ModeOption = Annotated[Mode | None, typer.Option(help="Convert images to grey or to colour.")]
ResizeOption = Annotated[
    Resize | None, typer.Option(help="Bring images to size: fill it and cut the rest, or distort.")
]


def text_of(choice: Enum | None) -> str | None:
    """The value as the library takes it.

    >>> text_of(Mode.L), text_of(None)
    ('L', None)
    """
    return None if choice is None else str(choice.value)
