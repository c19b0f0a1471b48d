"""Which split and class each file of a folder belongs to, told by the folders it lies in.

photos/cat/1.png                 one split, 'train', classes cat, dog
photos/train/cat/1.png           splits train and test (dev, val, ...), classes cat, dog
photos/1.png                     one split without labels
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mole.data.places import Place
from mole.data.source import Labels
from mole.errors import SourceError

SPLIT_NAMES = ("train", "test", "val", "valid", "validation", "dev")
MAIN_NAMES = {"train", "test"}


@dataclass(frozen=True)
class Files:
    """The files of a split, and the class of each, if they lie in class folders."""

    paths: tuple[str, ...]
    labels: Labels | None


def arrange(folder: Place, paths: Iterable[str]) -> tuple[dict[str, Files], tuple[str, ...] | None]:
    """Splits by name, and the names of the classes, if there are any.

    A split may lack class folders that another has, as test sets often do.
    """
    above = {path: folder.inside(path).split("/")[:-1] for path in paths}
    has_splits = _has_splits(folder, list(above.values()))
    class_of: dict[str, dict[str, str | None]] = {}
    for path, parts in above.items():
        split = parts[0].lower() if has_splits else "train"
        class_of.setdefault(split, {})[path] = next(iter(parts[1 if has_splits else 0 :]), None)
    classes = tuple(sorted({name for files in class_of.values() for name in files.values() if name}))
    splits = {split: _files(folder, class_of[split], classes) for split in sorted(class_of)}
    return splits, classes or None


def _has_splits(folder: Place, above: Sequence[Sequence[str]]) -> bool:
    """Whether the first folders are splits; 'dev' alone is none, nor is 'train' among other classes."""
    first = {parts[0].lower() if parts else "" for parts in above}
    named, others = first & set(SPLIT_NAMES), first - set(SPLIT_NAMES)
    if not others:
        return bool(named & MAIN_NAMES) or "dev" not in named
    has_classes = any(len(parts) > 1 and parts[0].lower() in named for parts in above)
    if "" not in others and (named >= MAIN_NAMES or has_classes):
        raise SourceError(
            f"{folder.shown} has folders named like splits ({', '.join(sorted(named))}) next to others "
            f"({', '.join(sorted(others)[:3])}): put every image into a split's folder, or none"
        )
    return False


def _files(folder: Place, class_of: Mapping[str, str | None], classes: tuple[str, ...]) -> Files:
    outside = [path for path, name in class_of.items() if name is None]
    if not outside:
        number = {name: index for index, name in enumerate(classes)}
        labels = [number[name] for name in class_of.values() if name is not None]
        return Files(tuple(class_of), np.array(labels, dtype=np.int64))
    if len(outside) < len(class_of):
        raise SourceError(
            f"{folder.child(outside[0]).shown} lies outside of the class folders next to it: "
            "put every image into one, or none"
        )
    return Files(tuple(class_of), None)
