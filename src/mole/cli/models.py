"""A network by its name on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

from mole.cli.terminal import CallError
from mole.errors import MoleError
from mole.scheme.shapes import Shape, check_shape

if TYPE_CHECKING:
    from torch import nn

MAX_CLASSES = 100_000


def build_model(name: str, shape: Shape, classes: int, weights: Path | None = None) -> "nn.Module":
    """A built-in network, or the one that module:factory makes; with weights, if there are some."""
    from mole.torch.models import load_model, load_weights  # noqa: PLC0415  (loads PyTorch)
    from mole.torch.networks import build_network  # noqa: PLC0415

    if ":" in name:
        model = load_model(name, input_shape=shape, classes=classes)
    else:
        model = build_network(name, shape, classes)
    if weights is not None:
        load_weights(model, weights)
    return model


def parse_shape(text: str) -> Shape:
    """A shape from text.

    >>> parse_shape("3x32x32")
    (3, 32, 32)
    """
    try:
        return check_shape(tuple(int(side) for side in text.split("x")))
    except (ValueError, MoleError):
        raise CallError(f"'{text}' is no shape: write it as 3x32x32") from None
