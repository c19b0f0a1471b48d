"""Images to experiment on: splits with labels, in their own shape or in that of a front."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mole.errors import ParameterError
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape
from mole.sources.bundled import fashion_mnist
from mole.sources.opening import open_source
from mole.sources.preparation import Preparation
from mole.sources.source import Labels, Source, Split, array_split, main_split

TESTS = ("test", "val")  # what a network is scored on: the first that is there


@dataclass(frozen=True)
class Part:
    """Some images of a split, in order.

    Attributes:
        split: where they are.
        start, stop: which they are.
        origin: changes when the images do.
    """

    split: Split
    start: int
    stop: int
    origin: str

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def labels(self) -> Labels:
        """The class of each."""
        labels = self.split.labels
        if labels is None:
            raise ParameterError("an experiment scores answers, and these images have no labels")
        return labels[self.start : self.stop]

    def cut(self, start: int, stop: int) -> "Part":
        """Those from one place to another, counted from its own start."""
        return replace(self, start=self.start + start, stop=min(self.start + stop, self.stop))

    def plain(self, preparation: Preparation) -> Array:
        """Plain data of them, (n, *input_shape)."""
        return preparation.plain_samples(self.split, range(self.start, self.stop))


@dataclass(frozen=True)
class ImageSet:
    """Images with labels, to learn from and to be scored on.

    Attributes:
        name: of the data.
        shape: of one image, channels first.
        classes: how many there are.
        train, test: the two parts.
        validation: a third one, to calibrate on; None where there is none.
    """

    name: str
    shape: Shape
    classes: int
    train: Part
    test: Part
    validation: Part | None

    @classmethod
    def of(cls, source: Source, name: str, address: str | None = None) -> "ImageSet":
        """The images of a source; errors call it by its address, if that is given.

        Raises:
            ParameterError: if it has no labels, or no second split to score on.
        """
        tests = [split for split in TESTS if split in source.splits]
        if "train" not in source.splits or not tests:
            raise ParameterError(
                f"{address or name} has no splits 'train' and 'test': an experiment needs both"
            )
        parts = {split: all_of(source, split) for split in ("train", *tests)}
        classes = 1 + max(int(part.labels.max()) for part in parts.values())
        validation = parts["val"] if tests == ["test", "val"] else None
        return cls(name, shape_of(source), classes, parts["train"], parts[tests[0]], validation)

    @property
    def about(self) -> tuple[object, ...]:
        """What tells it from other images."""
        parts = (self.train, self.test, *([] if self.validation is None else [self.validation]))
        return (self.name, *((part.origin, len(part)) for part in parts))

    def first(self, count: int, tests: int) -> "ImageSet":
        """The first images of each split alone."""
        return replace(self, train=self.train.cut(0, count), test=self.test.cut(0, tests))


def all_of(source: Source, split: str | None = None) -> Part:
    """All images of a split, or of the main one."""
    found = main_split(source) if split is None else source.splits[split]
    return Part(found, 0, len(found), f"{source.fingerprint} {split}")


def shape_of(source: Source) -> Shape:
    """The shape of the images of a source, channels first; all are taken to be like the first."""
    outline = main_split(source).outline(0)
    sample = main_split(source).read(0)
    shape, axes = (outline.shape, outline.axes) if outline else (sample.values.shape, sample.axes)
    if axes == "hw":
        return (1, *shape)
    return (shape[2], *shape[:2]) if axes == "hwc" else shape


def preparation_for(wanted: Shape, shape: Shape, normalisation: Normalisation | None = None) -> Preparation:
    """How images of one shape become what a front takes: in its colours, stretched to its size."""
    mode = None if wanted[0] == shape[0] else "L" if wanted[0] == 1 else "RGB"
    resize = None if wanted[1:] == shape[1:] else "stretch"
    return Preparation(wanted, normalisation, mode, resize)


def opened(path: Path) -> Source:
    """The images of a file or folder."""
    return open_source(path)


def bundled_sources() -> Mapping[str, Source]:
    """The images that ship with the package: 'private' with two splits, and 'public'."""
    arrays = fashion_mnist()

    def split(name: str) -> Split:
        return array_split(arrays[f"x_{name}"], arrays[f"y_{name}"].astype(np.int64), "Fashion-MNIST")

    private = {"train": split("private"), "test": split("test")}
    return {
        "private": Source("bundled", private, None, "Fashion-MNIST, private"),
        "public": Source("bundled", {"train": split("public")}, None, "Fashion-MNIST, public"),
    }
