"""Arrays in memory as splits: what .npz, .npy, idx and CIFAR files become."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import SourceError
from mole.sources.source import Labels, Sample

CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class ArraySplit:
    """A split whose samples are the rows of one array."""

    values: npt.NDArray[Any]
    labels: Labels | None
    axes: str
    label: str
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def read(self, index: int) -> Sample:
        """One row."""
        return Sample(self.values[index], self.axes)

    def name_of(self, index: int) -> str:
        """Which row of which file."""
        return f"sample {index} of {self.label}"


def guess_axes(shape: tuple[int, ...]) -> str:
    """What the axes of one sample are, by their lengths.

    >>> guess_axes((32, 32, 3)), guess_axes((1, 28, 28)), guess_axes((28, 28)), guess_axes((7,))
    ('hwc', 'chw', 'hw', 'any')
    >>> guess_axes((3, 4, 4))
    'either'
    """
    if len(shape) == 2:
        return "hw"
    if len(shape) != 3:
        return "any"
    first, last = shape[0] in CHANNELS, shape[2] in CHANNELS
    if first and last:
        return "either"
    return "hwc" if last else "chw" if first else "any"


def array_split(values: npt.NDArray[Any], labels: npt.NDArray[Any] | None, label: str) -> ArraySplit:
    """A split from an array of samples, and an array of whole-number labels."""
    if values.ndim < 2 or values.dtype.kind not in "uif":
        raise SourceError(
            f"{label}: an array of {values.dtype} and shape {values.shape} is not a set of images: "
            "give numbers, one row per sample"
        )
    if labels is not None:
        labels = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
        if labels.ndim != 1 or labels.dtype.kind not in "ui":
            raise SourceError(
                f"{label}: labels are {labels.dtype} of shape {labels.shape}: "
                "give one whole number per sample"
            )
        labels = labels.astype(np.int64)
    return ArraySplit(values, labels, guess_axes(values.shape[1:]), label)
