"""CIFAR's Python batches: pickles, read without running what a pickle could run."""

import _codecs
import io
import pickle
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import SourceError
from mole.sources.source import Source, array_split
from mole.storage.locations import FileMark, Location, fingerprint

ELEMENTS = 3 * 32 * 32

_BATCH = re.compile(r"^(data_batch_\d+|test_batch|train|test)$")
_META = re.compile(r"^(batches\.meta|meta)$")


class Batch(NamedTuple):
    """Pixels (n, 3072) and labels (n,) of one file."""

    pixels: npt.NDArray[np.uint8]
    labels: npt.NDArray[Any]


def holds_cifar(names: set[str]) -> bool:
    """Whether files of these names are CIFAR's."""
    return bool(names & {"data_batch_1", "test_batch"}) or {"train", "test", "meta"} <= names


def open_cifar(folder: Location, files: Iterable[str]) -> Source:
    """A folder of CIFAR's Python batches: data_batch_1 ... test_batch, or train and test."""
    batches: dict[str, list[Batch]] = {}
    used: dict[str, FileMark] = {}
    for path in files:
        place = folder.child(path)
        if _BATCH.match(place.name):
            content = place.read()
            used[path] = FileMark.of_content(content)
            split = "test" if place.name.startswith("test") else "train"
            batches.setdefault(split, []).append(_batch(place, content))
    splits = {}
    for split, parts in batches.items():
        pixels = np.concatenate([part.pixels for part in parts]).reshape(-1, 3, 32, 32)
        labels = np.concatenate([part.labels for part in parts])
        splits[split] = array_split(pixels, labels, f"{folder.label} ({split})")
    metas = [folder.child(path) for path in files if _META.match(path.rsplit("/", 1)[-1])]
    classes = None
    if metas:
        content = metas[0].read()
        used[metas[0].path] = FileMark.of_content(content)
        classes = _class_names(metas[0], content)
    return Source("cifar", splits, classes, fingerprint(folder, used))


def _batch(place: Location, content: bytes) -> Batch:
    batch = _unpickled(place, content)
    try:
        labels = np.asarray(batch.get("labels", batch.get("fine_labels")))
        pixels = np.asarray(batch["data"])
        if pixels.dtype != np.uint8 or pixels.shape != (len(labels), ELEMENTS):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise _not_a_batch(place) from None
    return Batch(pixels, labels)


def _class_names(place: Location, content: bytes) -> tuple[str, ...] | None:
    meta = _unpickled(place, content)
    names = meta.get("label_names", meta.get("fine_label_names"))
    return tuple(map(str, names)) if isinstance(names, list) else None


def _unpickled(place: Location, content: bytes) -> dict[str, Any]:
    try:
        unpickled = _ArraysOnly(io.BytesIO(content), encoding="latin1").load()
    except Exception:  # a pickle can fail in any way
        raise _not_a_batch(place) from None
    if not isinstance(unpickled, dict):
        raise _not_a_batch(place)
    return unpickled


def _not_a_batch(place: Location) -> SourceError:
    return SourceError(f"{place.label} is not one of CIFAR's files, or it is cut off: get it again")


class _ArraysOnly(pickle.Unpickler):
    """Reads pickles of plain arrays, and refuses everything that could run code."""

    # By what pickles call them: looked up here, so that nothing is imported because a pickle says so.
    _ALLOWED: Mapping[tuple[str, str], Any] = {
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("_codecs", "encode"): _codecs.encode,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a CIFAR batch")
        return self._ALLOWED[module, name]
