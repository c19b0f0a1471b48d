"""One sample of a split in a layer's input shape, or an error that names it."""

from typing import Any

import numpy.typing as npt

from mole.data.preparation import Preparation
from mole.data.source import BadSampleError, Split
from mole.errors import ShapeError


def shaped_sample(split: Split, index: int, preparation: Preparation) -> npt.NDArray[Any]:
    """A sample in the layer's input shape, in its own number type; raises BadSampleError."""
    try:
        return preparation.shape(split.read(index))
    except ShapeError as error:
        raise BadSampleError(split.name_of(index), str(error)) from None
