"""A folder of images: every file a sample, its split and class told by the folders that it lies in.

    photos/cat/1.png            one split, 'train', with classes cat, dog, ...
    photos/train/cat/1.png      splits train and test (or val, dev, ...), with classes cat, dog, ...
    photos/1.png                one split without labels

DICOM files are arranged in the same way. A table of labels takes the place of class folders.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mole.errors import SourceError
from mole.limits import MAX_IMAGE_BYTES
from mole.sources.image_headers import image_outline
from mole.sources.images import OTHER_SUFFIXES, SUFFIXES, ImageError, decode_image
from mole.sources.label_matching import FoundLabels, labels_of
from mole.sources.numbering import numbered
from mole.sources.reading import Reading
from mole.sources.source import BadSampleError, Labels, Outline, Sample, Source
from mole.sources.table_files import typed
from mole.storage.locations import FileMark, Location, fingerprint

SPLIT_NAMES = ("train", "test", "val", "valid", "validation", "dev")
NO_CLASS = -1  # of a file that cannot be used
MAIN_NAMES = {"train", "test"}


def open_folder(folder: Location, files: Mapping[str, FileMark], reading: Reading) -> Source:
    """A folder of images."""
    images = {path: mark for path, mark in files.items() if path.lower().endswith(SUFFIXES)}
    unread = [path for path in files if path.lower().endswith(OTHER_SUFFIXES)]
    if not images:
        raise SourceError(f"{folder.label} has no images ({', '.join(SUFFIXES)}): is it the right folder?")
    found = labels_of(folder, files, list(images), reading, unread=unread)
    arranged, classes = arrange(folder, images, found, labels=reading.labels)
    splits = {
        name: FileSplit(
            folder, part.paths, part.labels, {**part.columns, "file_name": file_names(part.paths)}
        )
        for name, part in arranged.items()
    }
    source = Source(
        "image folder", splits, classes, fingerprint(folder, images),
        decodes=True, unread=tuple(folder.child(path).label for path in unread),
    )  # fmt: skip
    return source if found is None else found.told_of(source)


@dataclass(frozen=True)
class FileSplit:
    """A split whose samples are files."""

    folder: Location
    paths: tuple[str, ...]
    labels: Labels | None
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> Sample:
        """One decoded image."""
        place = self.folder.child(self.paths[index])
        with _told_of(place):
            return decode_image(place.read_at_most(MAX_IMAGE_BYTES))

    def outline(self, index: int) -> Outline | None:
        """What the header and the end of a file tell."""
        place = self.folder.child(self.paths[index])
        with _told_of(place), place.open() as file:
            return image_outline(file)

    def name_of(self, index: int) -> str:
        """The file's name."""
        return self.folder.child(self.paths[index]).label


@contextmanager
def _told_of(place: Location) -> Iterator[None]:
    """Say of a file what is wrong with it."""
    try:
        yield
    except ImageError as error:
        raise BadSampleError(place.label, str(error)) from None
    except SourceError as error:
        raise BadSampleError(place.label, error.message.removeprefix(f"{place.label} ")) from None


@dataclass(frozen=True)
class Files:
    """The files of a split, the class of each, if they have any, and what a table says of each."""

    paths: tuple[str, ...]
    labels: Labels | None
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)


Arranged = tuple[dict[str, Files], tuple[str, ...] | None]


def arrange(
    folder: Location, paths: Iterable[str], found: FoundLabels | None = None, *, labels: bool = True
) -> Arranged:
    """Splits by name, and the names of the classes, if there are any and labels are wanted.

    A split may lack class folders that another has, as test sets often do.
    """
    above = {path: folder.inside(path).split("/")[:-1] for path in paths}
    has_splits = _has_splits(folder, list(above.values()))
    class_of: dict[str, dict[str, str | None]] = {}
    for path, parts in above.items():
        split = parts[0].lower() if has_splits else "train"
        folders = parts[1 if has_splits else 0 :] if labels else []
        class_of.setdefault(split, {})[path] = next(iter(folders), None)
    if found is not None and found.has_labels:
        splits, classes = _by_table(folder, class_of, found)
    else:
        names = tuple(sorted({name for files in class_of.values() for name in files.values() if name}))
        splits = {split: _files(folder, class_of[split], names) for split in sorted(class_of)}
        classes = names or None
    if found is not None:
        cells = _cells(found)
        splits = {
            split: replace(
                part, columns={name: [cells[name].get(path) for path in part.paths] for name in cells}
            )
            for split, part in splits.items()
        }
    return splits, classes


def file_names(paths: Sequence[str]) -> list[str]:
    """Names of files without their folders."""
    return [path.rsplit("/", 1)[-1] for path in paths]


def _by_table(
    folder: Location, class_of: Mapping[str, Mapping[str, str | None]], found: FoundLabels
) -> Arranged:
    """Splits by folders, and classes by tables; a split that no table gives labels has none."""
    label_of = {path: row.label for path, row in found.rows.items() if row.label is not None}
    parts: dict[str, list[str | int | None]] = {}
    for split, files in class_of.items():
        unknown = [path for path in files if path not in label_of and path not in found.unusable]
        if unknown and (len(unknown) < len(files) or any(files.values())):
            what = "has no label in its table" if unknown[0] in found.rows else "is in no table of labels"
            verb = "have" if unknown[0] in found.rows else "are"
            raise SourceError(
                f"{folder.child(unknown[0]).label} {what}, and others {verb}: give every image a label in "
                "a table, or none"
            )
        if not unknown:
            parts[split] = [label_of.get(path) for path in files]
    values = [label for part in parts.values() for label in part]
    numbers, classes = numbered([value for value in values if value is not None])
    labels = np.full(len(values), NO_CLASS, dtype=np.int64)
    labels[[value is not None for value in values]] = numbers
    ends = np.cumsum([len(part) for part in parts.values()])[:-1]
    labels_of_split = dict(zip(parts, np.split(labels, ends), strict=True))
    splits = {
        split: Files(tuple(class_of[split]), labels_of_split.get(split)) for split in sorted(class_of)
    }
    return splits, classes


def _cells(found: FoundLabels) -> dict[str, dict[str, Any]]:
    """Further columns of tables by name, each with its cells by path, of one type for all splits."""
    names = dict.fromkeys(name for row in found.rows.values() for name in row.cells)
    return {
        name: dict(
            zip(found.rows, typed([row.cells.get(name) for row in found.rows.values()]), strict=True)
        )
        for name in names
    }


def _has_splits(folder: Location, above: Sequence[Sequence[str]]) -> bool:
    """Whether the first folders are splits: 'dev' alone is a class, and so is 'train' among others."""
    first = {parts[0].lower() if parts else "" for parts in above}
    named, others = first & set(SPLIT_NAMES), first - set(SPLIT_NAMES)
    if not others:
        return bool(named & MAIN_NAMES) or "dev" not in named
    has_classes = any(len(parts) > 1 and parts[0].lower() in named for parts in above)
    if "" not in others and (named >= MAIN_NAMES or has_classes):
        raise SourceError(
            f"{folder.label} has folders named like splits ({', '.join(sorted(named))}) next to others "
            f"({', '.join(sorted(others)[:3])}): put every image into a split's folder, or none"
        )
    return False


def _files(folder: Location, class_of: Mapping[str, str | None], classes: tuple[str, ...]) -> Files:
    outside = [path for path, name in class_of.items() if name is None]
    if not outside:
        number = {name: index for index, name in enumerate(classes)}
        labels = [number[name] for name in class_of.values() if name is not None]
        return Files(tuple(class_of), np.array(labels, dtype=np.int64))
    if len(outside) < len(class_of):
        raise SourceError(
            f"{folder.child(outside[0]).label} lies outside the class folders next to it: "
            "put every image into one, or none"
        )
    return Files(tuple(class_of), None)
