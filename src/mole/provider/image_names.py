"""Where recovered images go in a folder: splits, classes and names, none of which can lead out of it.

Names of splits and classes come from a delivery, and those of files from the source: a name that could
mean another place, or that cannot be seen, is replaced by a number.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.foreign_text import printable, shown
from mole.provider.keys import MorphKey
from mole.provider.row_numbers import RowNumbers
from mole.sources.dicom import SUFFIX as DICOM_SUFFIX
from mole.sources.images import SUFFIXES
from mole.sources.source import Source, Split

LONGEST = 200  # bytes of a name, which most file systems end at 255
_FORBIDDEN = set('/\\<>:"|?*')


@dataclass(frozen=True)
class Originals:
    """What the source calls the samples of a delivery, in the order of the source.

    Attributes:
        names: for the provider's eyes: path and frame, or row.
        files: the names of files without their folders, where samples are files.
        frames: the numbers of frames, where files have several.
    """

    names: Mapping[str, Sequence[str]]
    files: Mapping[str, Sequence[str]]
    frames: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, source: Source, delivery: Delivery, key: MorphKey) -> "Originals":
        """Those of a delivery that was made from this source.

        Raises:
            DeliveryError: if it was made from another one.
        """
        names, files, frames = dict[str, list[str]](), dict[str, list[str]](), dict[str, list[int]]()
        for split in delivery.manifest.splits:
            part = source_split(source, delivery, split)
            ids, numbers = delivery.row_ids(split), RowNumbers.of(delivery, key, split)
            samples = sorted(numbers.samples_of([ids[place] for place in numbers.first_views(ids)]))
            names[split] = [part.name_of(sample) for sample in samples]
            if "file_name" in part.extra:
                files[split] = [str(part.extra["file_name"][sample]) for sample in samples]
            if "frame" in part.extra and source.kind == "DICOM":
                frames[split] = [int(part.extra["frame"][sample]) for sample in samples]
        return cls(names, files, frames)


def source_split(source: Source, delivery: Delivery, split: str) -> Split:
    """The split of a source that a split of a delivery was made from."""
    part, expected = source.splits.get(split), delivery.split(split).samples
    if part is None or len(part) != expected:
        raise DeliveryError(
            f"{delivery.label} was made from {expected} samples in split '{shown(split)}', and the data "
            f"has {0 if part is None else len(part)}: give the data it was made from"
        )
    return part


@dataclass(frozen=True)
class ImageNames:
    """The place of every recovered image of a delivery.

    Attributes:
        splits: those of the delivery.
        arrays: what was recovered.
        classes: names of the classes, if they are known.
        originals: what the source calls them; None for numbers.
    """

    splits: Sequence[str]
    arrays: Mapping[str, npt.NDArray[Any]]
    classes: Sequence[str] | None = None
    originals: Originals | None = None

    def of(self, split: str) -> Iterator[PurePosixPath]:
        """Places for the images of a split, no two of which are the same."""
        labels = self.arrays.get(f"y_{split}")
        folder, used = PurePosixPath(self._folder_of(split)), set[str]()
        width = len(str(len(self.arrays[f"x_{split}"])))
        for index in range(len(self.arrays[f"x_{split}"])):
            above = folder if labels is None else folder / self._class_of(int(labels[index]))
            number = f"{index:0{width}d}"
            stem = self._stem(split, index) or number
            place = above / f"{stem}.png"
            while str(place).casefold() in used:  # another file may have the very name that tells it apart
                stem = f"{stem} ({number})"
                place = above / f"{stem}.png"
            used.add(str(place).casefold())
            yield place

    def _folder_of(self, split: str) -> str:
        if list(self.splits) == ["train"]:
            return ""
        return split if is_safe(split) else f"split {list(self.splits).index(split)}"

    @cached_property
    def _class_folders(self) -> Sequence[str]:
        """The names of the classes, where each of them can be a folder of its own."""
        names = self.classes or ()
        are_folders = all(map(is_safe, names)) and len({name.casefold() for name in names}) == len(names)
        return names if are_folders else ()

    def _class_of(self, label: int) -> str:
        return self._class_folders[label] if 0 <= label < len(self._class_folders) else str(label)

    def _stem(self, split: str, index: int) -> str | None:
        if self.originals is None or split not in self.originals.files:
            return None
        name = self.originals.files[split][index]
        stem, dot, ending = name.rpartition(".")
        if dot and stem and f".{ending}".lower() in (*SUFFIXES, DICOM_SUFFIX):
            name = stem
        if any(self.originals.frames.get(split, ())):
            name = f"{name}-{self.originals.frames[split][index]:04d}"
        return name if is_safe(name) else None


def is_safe(name: str) -> bool:
    r"""Whether a name can be that of a file or folder, on any system, and leads nowhere else.

    >>> is_safe("cat"), is_safe("../cat"), is_safe(".."), is_safe("a\x1bb"), is_safe("")
    (True, False, False, False, False)
    """
    return (
        bool(name.strip(" ."))
        and not name.startswith(".")
        and not set(name) & _FORBIDDEN
        and printable(name) == name
        and len(name.encode("utf-8", "replace")) <= LONGEST
    )
