"""Predictions at home: front and head on the provider's own images, without noise, key or PyTorch."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mole.errors import FileError, MoleWarning, ParameterError
from mole.foreign_text import listed, shown
from mole.progress import Progress, no_progress
from mole.protection.channel import clip
from mole.protection.front_file import Front, read_front
from mole.protection.front_runner import FrontRunner
from mole.protection.head import softmax
from mole.protection.head_file import HomeHead, read_head
from mole.scheme.shapes import Array
from mole.sources.opening import open_source
from mole.sources.plain_samples import read_many
from mole.sources.preparation import MODES, RESIZES, Mode, Preparation, Resize
from mole.sources.source import Source, Split

SAMPLES_AT_ONCE = 256
CLASS_NAMES = b"class_names"  # of the whole table, in its metadata
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Seen:
    """What front and head make of images.

    Attributes:
        splits, names: where each comes from, and what it is called there.
        scores: of each class, (n, classes).
        labels: of each image, as the head numbers classes; None where none are known.
        class_names: names of the head's classes, where there are any.
    """

    splits: list[str]
    names: list[str]
    scores: npt.NDArray[np.float64]
    labels: Labels | None
    class_names: tuple[str, ...] | None


@dataclass(frozen=True)
class AtHome:
    """A front and a head that belong together, and how images become the front's input.

        at_home = AtHome.open("front.onnx", "head.onnx", resize="crop")
        at_home.predict("photos")

    Attributes:
        front: what turns images into features.
        home: what turns features into answers.
        preparation: what turns images into the front's input: as in the delivery, unless told otherwise.
        skip_bad: leave out images that cannot be used.
    """

    front: Front
    home: HomeHead
    preparation: Preparation
    skip_bad: bool = False

    @classmethod
    def open(
        cls,
        front: str | PathLike[str],
        head: str | PathLike[str],
        *,
        mode: Mode | None = None,
        resize: Resize | None = None,
        skip_bad: bool = False,
    ) -> "AtHome":
        """Read both files.

        Warns:
            MoleWarning: if images are to be taken in another way than in the delivery.

        Raises:
            FileError: if one of them cannot be used, or they do not belong together.
        """
        home, opened = read_head(Path(head)), read_front(Path(front))
        home.check_front(opened, Path(head))
        if home.head.weight.shape[1] != opened.dimensions:
            raise ParameterError(
                f"{head} takes {home.head.weight.shape[1]} features, and {front} gives {opened.dimensions}"
            )
        for what, asked, known in (("mode", home.mode, MODES), ("resize", home.resize, RESIZES)):
            if asked is not None and asked not in known:  # it was the developer's word
                raise FileError(f"{head} wants {what} '{shown(asked)}', which is unknown: ask for it again")
            if asked is not None and (given := {"mode": mode, "resize": resize}[what]) not in (None, asked):
                warnings.warn(
                    f"{head} learned from images with {what} '{shown(asked)}', and these are taken with "
                    f"'{given}': its answers may be wrong",
                    MoleWarning,
                    stacklevel=2,
                )
        preparation = Preparation(
            opened.input_shape, opened.normalisation, mode or home.mode, resize or home.resize, "front"
        )
        return cls(opened, home, preparation, skip_bad)

    def predict(
        self,
        data: str | PathLike[str] | Source,
        *,
        split: str | None = None,
        progress: Progress = no_progress,
    ) -> pa.Table:
        """An answer for every image: its name, the class, the probability of each class, and its label.

        Raises:
            SourceError: if the images cannot be read.
            ParameterError: if there is no split of that name; without one all are taken.
        """
        chosen = chosen_split(open_source(data), split)
        seen = self.look(chosen, progress)
        chances = softmax(seen.scores)
        return table_of(seen, chances, self.home.answers(chances))

    def look(self, source: Source, progress: Progress = no_progress) -> Seen:
        """What front and head make of all images of a source; features are clipped as in a delivery.

        Warns:
            MoleWarning: if the images are of other classes than the head knows.
        """
        numbers = class_numbers(source, self.home.class_names, self.home.head.classes)
        if numbers is None:
            words = f"labels are left out: {other_classes(source, self.home)}"
            warnings.warn(words, MoleWarning, stacklevel=2)
        splits, names, scores, labels = [], [], [], []
        for name, index, features in self._features(source, progress):
            split = source.splits[name]
            scores.append(self.home.head.scores(features))
            splits += [name] * len(index)
            names += [split.name_of(one) for one in index]
            labels += _labels(split, index, numbers)
        every = np.concatenate(scores) if scores else np.empty((0, self.home.head.classes))
        found = np.array(labels, np.int64) if len(labels) == len(every) and len(every) else None
        has_names = source.classes is not None and len(source.classes) == self.home.head.classes
        theirs = source.classes if has_names else None
        return Seen(splits, names, every, found, self.home.class_names or theirs)

    def labelled_features(
        self, source: Source, progress: Progress = no_progress
    ) -> tuple[npt.NDArray[np.float64], Labels | None]:
        """Clipped features of all images, (n, d), and their labels as the head numbers classes.

        A label is -1 where the head does not know the class; there are none where an image has none.
        """
        numbers = class_numbers(source, self.home.class_names, self.home.head.classes)
        rows, labels = [], []
        for name, index, features in self._features(source, progress):
            rows.append(features)
            labels += _labels(source.splits[name], index, numbers)
        every = np.concatenate(rows) if rows else np.empty((0, self.front.dimensions))
        return every, np.array(labels, np.int64) if len(labels) == len(every) and len(every) else None

    def _features(
        self, source: Source, progress: Progress
    ) -> Iterator[tuple[str, list[int], npt.NDArray[np.float64]]]:
        """The split, the numbers of its samples and their features, some at a time."""
        done = 0
        with FrontRunner(self.front) as run:
            for name, index, images in plain_batches(self.preparation, source, skip_bad=self.skip_bad):
                yield name, index, clip(run(images), self.home.clip)[0]
                done += len(index)
                progress(done, source.count)


def _labels(split: Split, index: list[int], numbers: dict[int, int] | None) -> list[int]:
    """Labels of some samples as the head numbers classes; none where there are none, or others."""
    if split.labels is None or numbers is None:
        return []
    return [numbers.get(int(one), -1) for one in split.labels[index]]


def plain_batches(
    preparation: Preparation, source: Source, *, skip_bad: bool
) -> Iterator[tuple[str, list[int], npt.NDArray[np.float32]]]:
    """All images of a source as plain data: the split, the numbers of its samples, and the samples."""
    for name, split in source.splits.items():
        for start in range(0, len(split), SAMPLES_AT_ONCE):
            index = list(range(start, min(start + SAMPLES_AT_ONCE, len(split))))
            read = read_many(preparation, split, index, skip_bad=skip_bad)
            if read.places:
                yield name, [index[place] for place in read.places], np.asarray(read.plain, np.float32)


def table_of(seen: Seen, chances: Array, answers: Labels) -> pa.Table:
    """Answers as a table, with names of classes and labels where there are any."""
    columns: dict[str, Any] = {"split": seen.splits, "name": seen.names, "prediction": answers}
    if seen.class_names is not None:
        columns["class_name"] = pa.array([seen.class_names[one] for one in answers.tolist()], pa.string())
    columns["probability"] = pa.FixedSizeListArray.from_arrays(
        pa.array(chances.astype(np.float32).reshape(-1)), chances.shape[1]
    )
    if seen.labels is not None:
        columns["label"] = seen.labels
    table = pa.table(columns)
    if seen.class_names is None:
        return table
    return table.replace_schema_metadata({CLASS_NAMES: json.dumps([*seen.class_names])})


def chosen_split(source: Source, split: str | None) -> Source:
    """One split of a source, or all of it.

    Raises:
        ParameterError: if there is no split of that name.
    """
    if split is not None and split not in source.splits:
        raise ParameterError(
            f"there is no split '{shown(split)}' in the data: it has {listed(source.splits)}"
        )
    return source if split is None else replace(source, splits={split: source.splits[split]})


def class_numbers(source: Source, theirs: tuple[str, ...] | None, classes: int) -> dict[int, int] | None:
    """A network's number for each class of a source, by names where both have some; None if none fits."""
    ours = source.classes
    if ours is None or (theirs is None and len(ours) == classes):
        return {number: number for number in range(classes)}
    known = {name: number for number, name in enumerate(theirs or ())}
    return {number: known[name] for number, name in enumerate(ours)} if set(ours) <= set(known) else None


def classes_apart(source: Source, theirs: tuple[str, ...] | None, classes: int, who: str) -> str:
    """In words, that a source has other classes than a network, which is called `who`."""
    apart = f"{classes} classes without names" if theirs is None else listed(theirs)
    return f"the {who} tells {apart} apart, and the images are of {listed(source.classes or ())}"


def other_classes(source: Source, home: HomeHead) -> str:
    """In words, that a source has other classes than a head; nothing where they fit."""
    theirs, classes = home.class_names, home.head.classes
    if class_numbers(source, theirs, classes) is not None:
        return ""
    return classes_apart(source, theirs, classes, "head")
