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
from mole.sources.opening import open_source
from mole.sources.plain_samples import read_many
from mole.sources.preparation import MODES, RESIZES, Mode, Preparation, Resize
from mole.sources.source import Source

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
        preparation = Preparation(
            opened.input_shape, opened.normalisation, mode or home.mode, resize or home.resize
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
        source = open_source(data)
        if split is not None and split not in source.splits:
            raise ParameterError(
                f"there is no split '{shown(split)}' in the data: it has {listed(source.splits)}"
            )
        chosen = source if split is None else replace(source, splits={split: source.splits[split]})
        return table_of(self.look(chosen, progress), self.home)

    def look(self, source: Source, progress: Progress = no_progress) -> Seen:
        """What front and head make of all images of a source; features are clipped as in a delivery.

        Warns:
            MoleWarning: if the images are of other classes than the head knows.
        """
        numbers = _class_numbers(source, self.home)
        if numbers is None:
            words = f"labels are left out: {other_classes(source, self.home)}"
            warnings.warn(words, MoleWarning, stacklevel=2)
        splits, names, scores, labels = [], [], [], []
        done = 0
        with FrontRunner(self.front) as run:
            for name, index, images in self._batches(source):
                split = source.splits[name]
                features = clip(run(images), self.home.clip)[0]
                scores.append(self.home.head.scores(features))
                splits += [name] * len(index)
                names += [split.name_of(one) for one in index]
                if split.labels is not None and numbers is not None:
                    labels += [numbers.get(int(one), -1) for one in split.labels[index]]
                done += len(index)
                progress(done, source.count)
        every = np.concatenate(scores) if scores else np.empty((0, self.home.head.classes))
        found = np.array(labels, np.int64) if len(labels) == len(every) and len(every) else None
        has_names = source.classes is not None and len(source.classes) == self.home.head.classes
        theirs = source.classes if has_names else None
        return Seen(splits, names, every, found, self.home.class_names or theirs)

    def _batches(self, source: Source) -> Iterator[tuple[str, list[int], npt.NDArray[np.float32]]]:
        """Images as the front takes them: the split, the numbers of its samples, and the samples."""
        for name, split in source.splits.items():
            for start in range(0, len(split), SAMPLES_AT_ONCE):
                index = list(range(start, min(start + SAMPLES_AT_ONCE, len(split))))
                read = read_many(self.preparation, split, index, skip_bad=self.skip_bad)
                if read.places:
                    yield name, [index[place] for place in read.places], np.asarray(read.plain, np.float32)


def table_of(seen: Seen, home: HomeHead) -> pa.Table:
    """Answers as a table, with names of classes and labels where there are any."""
    chances = softmax(seen.scores)
    answers = home.answers(chances)
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


def _class_numbers(source: Source, home: HomeHead) -> dict[int, int] | None:
    """The head's number for each class of a source, by names where both have some; None where none fits."""
    ours, theirs = source.classes, home.class_names
    if ours is None or (theirs is None and len(ours) == home.head.classes):
        return {number: number for number in range(home.head.classes)}
    known = {name: number for number, name in enumerate(theirs or ())}
    return {number: known[name] for number, name in enumerate(ours)} if set(ours) <= set(known) else None


def other_classes(source: Source, home: HomeHead) -> str:
    """In words, that a source has other classes than a head; nothing where they fit."""
    if _class_numbers(source, home) is not None:
        return ""
    theirs = home.class_names
    apart = f"{home.head.classes} classes without names" if theirs is None else listed(theirs)
    return f"the head tells {apart} apart, and the images are of {listed(source.classes or ())}"
