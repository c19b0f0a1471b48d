"""What the provider has: named splits of samples that can be counted and read one by one.

A source is opened once and read in a secret random order, so every split gives random access. A sample
comes as it is stored; making plain data of it is `mole.sources.preparation`'s business.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mole.errors import Advice, SourceError
from mole.foreign_text import shown
from mole.limits import MAX_CLASSES

Labels = npt.NDArray[np.int64]
CHANNELS = (1, 3, 4)


class Sample(NamedTuple):
    """A sample as stored, and what its axes are.

    Axes are 'hw', 'hwc' or 'chw'; 'either' for an array that could be 'chw' or 'hwc'; 'any' for what is
    not an image.
    """

    values: npt.NDArray[Any]
    axes: str


class Outline(NamedTuple):
    """What a sample will be when it is read, as far as a header tells: its shape, axes and number type."""

    shape: tuple[int, ...]
    axes: str
    dtype: str


class BadSampleError(SourceError):
    """One sample that cannot be read; `name` says which, for the provider's eyes only."""

    def __init__(self, name: str, reason: str, *, advice: Advice | None = None) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name} cannot be used: {reason}", advice=advice)

    def __reduce__(self) -> tuple[Any, ...]:
        return _bad_sample, (self.name, self.reason, self.advice)


class Split(Protocol):
    """A part of a data set, such as 'train'."""

    @property
    def labels(self) -> Labels | None:
        """The class of each sample, or None."""

    @property
    def extra(self) -> Mapping[str, Sequence[Any]]:
        """Further columns by name; they leave only if the provider names them."""

    def __len__(self) -> int: ...

    def read(self, index: int) -> Sample:
        """One sample; raises BadSampleError."""

    def outline(self, index: int) -> Outline | None:
        """What `read` would give, without decoding pixels; None where only reading tells.

        Raises:
            BadSampleError: where it shows already that the sample cannot be read.
        """

    def name_of(self, index: int) -> str:
        """How to tell the provider which sample is meant."""


@dataclass(frozen=True)
class Source:
    """An opened data set.

    Attributes:
        kind: what it is, in a word or two.
        splits: its splits by name.
        classes: names of the classes, if it has any.
        fingerprint: changes when the content does, or the time of a file that is not read whole.
        decodes: whether reading a sample takes real work, so that several threads help.
        unread: files that look like samples and are of a kind that cannot be read.
        labels_from: what gave the labels, if it was not the data itself: a table, or a DICOM tag.
        remarks: what the provider should know of how it was read.
        privacy_remark: what the samples may show about people; empty where nothing says so.
    """

    kind: str
    splits: Mapping[str, Split]
    classes: tuple[str, ...] | None
    fingerprint: str
    decodes: bool = field(default=False)
    unread: tuple[str, ...] = ()
    labels_from: str | None = None
    remarks: tuple[str, ...] = ()
    privacy_remark: str = ""

    @property
    def count(self) -> int:
        """Number of samples in all splits."""
        return sum(len(split) for split in self.splits.values())


def _bad_sample(name: str, reason: str, advice: Advice) -> BadSampleError:
    """One that comes from another process."""
    return BadSampleError(name, reason, advice=advice)


def main_split(source: Source) -> Split:
    """The split that stands for the whole: 'train', or else the largest."""
    return source.splits.get("train") or max(source.splits.values(), key=len)


def check_source(source: Source, path: str) -> Source:
    """The same source without empty splits, or an error where nothing is left or labels do not match."""
    if source.count == 0:
        raise SourceError(f"{path} has no images: give a folder, file or data set with some")
    for name, split in source.splits.items():
        if split.labels is not None and len(split.labels) != len(split):
            raise SourceError(
                f"{path}: split '{shown(name)}' has {len(split)} samples and {len(split.labels)} labels: "
                "give one label per sample"
            )
        if split.labels is not None and len(split) and not _are_classes(split.labels):
            raise SourceError(
                f"{path}: split '{shown(name)}' has labels from {split.labels.min()} to "
                f"{split.labels.max()}: number the classes from 0, at most {MAX_CLASSES}"
            )
    return replace(source, splits={name: split for name, split in source.splits.items() if len(split)})


def _are_classes(labels: Labels) -> bool:
    """Whether labels can number classes; a few below zero stand for 'none' in some data sets."""
    return bool(-MAX_CLASSES < labels.min() <= labels.max() < MAX_CLASSES)


def without_labels(source: Source) -> Source:
    """The same samples, without labels and without the names of classes."""
    splits = {name: _Unlabelled(split) for name, split in source.splits.items()}
    return replace(source, splits=splits, classes=None, labels_from=None)


@dataclass(frozen=True)
class SplitAlike:
    """A split that is like another one, but for what is said otherwise."""

    split: Split

    @property
    def labels(self) -> Labels | None:
        """Those of the other one."""
        return self.split.labels

    @property
    def extra(self) -> Mapping[str, Sequence[Any]]:
        """Likewise."""
        return self.split.extra

    def __len__(self) -> int:
        return len(self.split)

    def read(self, index: int) -> Sample:
        """Likewise."""
        return self.split.read(index)

    def outline(self, index: int) -> Outline | None:
        """Likewise."""
        return self.split.outline(index)

    def name_of(self, index: int) -> str:
        """Likewise."""
        return self.split.name_of(index)


class _Unlabelled(SplitAlike):
    """A split whose classes nobody learns."""

    @property
    def labels(self) -> None:
        """None."""


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

    def outline(self, index: int) -> Outline:
        """What every row is."""
        return Outline(self.values.shape[1:], self.axes, self.values.dtype.name)

    def name_of(self, index: int) -> str:
        """Which row of which file."""
        return f"sample {index} of {self.label}"


def as_array(split: Split) -> ArraySplit | None:
    """The array whose rows are the samples of a split; None where there is no such array."""
    split = split.split if isinstance(split, _Unlabelled) else split
    return split if isinstance(split, ArraySplit) else None


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
