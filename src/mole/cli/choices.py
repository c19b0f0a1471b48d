"""Options with a few possible values: typer lists them in the help, and refuses others."""

from enum import Enum
from typing import Annotated

import typer


class Dtype(str, Enum):
    """How morphed values are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


class LayerDtype(str, Enum):
    """How an augmented layer is stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"


class Mode(str, Enum):
    """Colours that images are converted to."""

    L = "L"
    RGB = "RGB"


class Resize(str, Enum):
    """How images are brought to size."""

    CROP = "crop"
    STRETCH = "stretch"


class CoreKind(str, Enum):
    """Kinds of core."""

    ORTHOGONAL = "orthogonal"
    WHITENED = "whitened"
    GAUSSIAN = "gaussian"


class EngineName(str, Enum):
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
