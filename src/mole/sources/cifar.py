"""CIFAR's Python batches: pickles of arrays, read without calling anything that a pickle names."""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import SourceError
from mole.sources.inert_pickle import Call, Name, PickleError, read_pickle
from mole.sources.source import Source, array_split
from mole.storage.locations import FileMark, Location, fingerprint

ELEMENTS = 3 * 32 * 32
MAX_AXES = 4  # an array has two; numbers of a file's own choice are multiplied only where they are few

# What pickles of arrays name, in NumPy's older and newer words.
_ARRAYS = {Name(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")}
_DTYPE, _ENCODE = Name("numpy", "dtype"), Name("_codecs", "encode")
_KNOWN = {*_ARRAYS, _DTYPE, _ENCODE, Name("numpy", "ndarray")}
_NUMBERS = {"u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"}

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
    try:
        batch = _entries(content)
        labels = _labels(batch["labels"] if "labels" in batch else batch["fine_labels"])
        pixels = _array(batch["data"])
        if labels.ndim != 1 or pixels.dtype != np.uint8 or pixels.shape != (len(labels), ELEMENTS):
            raise PickleError("its array has another shape")
    except (KeyError, PickleError):
        raise _not_a_batch(place) from None
    return Batch(pixels, labels)


def _class_names(place: Location, content: bytes) -> tuple[str, ...] | None:
    try:
        meta = _entries(content)
    except PickleError:
        raise _not_a_batch(place) from None
    names = meta.get("label_names", meta.get("fine_label_names"))
    is_text = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return tuple(names) if names and is_text else None


def _entries(content: bytes) -> dict[Any, Any]:
    entries = read_pickle(content, _KNOWN)
    if not isinstance(entries, dict):
        raise PickleError("it is not a dictionary")
    return entries


def _labels(value: Any) -> npt.NDArray[Any]:
    """Labels from a list of whole numbers, or from an array."""
    if isinstance(value, Call):
        return _array(value)
    if not isinstance(value, list) or not all(type(label) is int for label in value):
        raise PickleError("its labels are not whole numbers")
    try:
        return np.array(value, dtype=np.int64)
    except OverflowError:
        raise PickleError("its labels are too large") from None


def _array(value: Any) -> npt.NDArray[Any]:
    """The array that a pickle describes, made from its bytes: whole numbers only, and as many as it has."""
    match value:
        case Call(name=name, state=(int(), tuple(shape), dtype, bool(is_fortran), stored)) if (
            name in _ARRAYS
        ):
            content, kind = _bytes(stored), _number_type(dtype)
        case _:
            raise PickleError("it has something else where an array should be")
    sides = [side for side in shape if isinstance(side, int) and 0 <= side <= len(content)]
    if len(shape) > MAX_AXES or len(sides) != len(shape):
        raise PickleError("its array has a shape that cannot be")
    if math.prod(sides) * kind.itemsize != len(content):
        raise PickleError("its array has another size than its bytes")
    return np.frombuffer(content, kind).reshape(sides, order="F" if is_fortran else "C")


def _number_type(value: Any) -> np.dtype[Any]:
    match value:
        case Call(name=name, arguments=(str(code), *_), state=(int(), str(order), *_)) if name == _DTYPE:
            if code.lstrip("|<>=") in _NUMBERS and order in ("|", "<", ">"):
                return np.dtype(order + code.lstrip("|<>="))
    raise PickleError("its array is not of whole numbers")


def _bytes(value: Any) -> bytes:
    """Bytes, which Python 2 wrote as text, and Python 3 as text to encode."""
    match value:
        case Call(name=name, arguments=(str(text), str())) if name == _ENCODE:
            value = text
    try:
        return value.encode("latin-1") if isinstance(value, str) else bytes(memoryview(value))
    except (TypeError, UnicodeEncodeError):
        raise PickleError("its array has no bytes") from None


def _not_a_batch(place: Location) -> SourceError:
    return SourceError(f"{place.label} is not one of CIFAR's files, or it is cut off: get it again")
