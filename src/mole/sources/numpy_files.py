"""NumPy's own files: .npz with named arrays, and .npy with one array."""

import io
import math
import re
import zipfile
from collections.abc import Mapping
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from mole.errors import SourceError
from mole.foreign_text import listed
from mole.limits import most_unpacked
from mole.quantities import size_text
from mole.sources.source import Source, array_split
from mole.storage.locations import Location, fingerprint

IMAGES, LABELS = "images", "labels"

_ROLES = {
    **dict.fromkeys(("x", "image", "images", "data", "pixels"), IMAGES),
    **dict.fromkeys(("y", "label", "labels", "target", "targets"), LABELS),
}
# A split's name stands alone in the array's, but for an x or y as in 'xtrain': 'latest' holds no 'test'.
_SPLIT = re.compile(r"(?<![a-wz])(train|test|dev|val(?:id(?:ation)?)?)(?![a-wz])")


def open_npz(place: Location, *, labels: bool = True) -> Source:
    """Arrays named x_train, y_train, x_test, ... (or images, train_images, train_labels, ...)."""
    content, name = place.read_whole()
    arrays = _load(place, ".npz", io.BytesIO(content))
    if not isinstance(arrays, dict):
        raise SourceError(f"{place.label} holds one array and not several: name it .npy")
    classes = arrays.pop("classes", None)
    images = _arrays_of(IMAGES, arrays, place)
    numbers = _arrays_of(LABELS, arrays, place) if labels else {}
    if not images:
        raise SourceError(f"{place.label} holds no array of images: name it images, x_train or x_test")
    splits = {
        split: array_split(array, numbers.get(split), f"{place.label}:{split}")
        for split, array in images.items()
    }
    is_text = classes is not None and classes.dtype.kind == "U"
    names = tuple(map(str, classes.reshape(-1))) if is_text else None
    return Source("npz", splits, names, name)


def open_npy(place: Location) -> Source:
    """One array, as a split 'train' without labels; on a local disk it is mapped, not loaded."""
    if place.is_local:
        values = _load(place, ".npy", place.path, mmap_mode="r")
        name = fingerprint(place, {place.path: place.mark()})
    else:
        content, name = place.read_whole()
        values = _load(place, ".npy", io.BytesIO(content))
    if isinstance(values, dict):
        raise SourceError(f"{place.label} holds several arrays and not one: name it .npz")
    split = array_split(values, None, place.label)
    return Source("npy", {"train": split}, None, name)


def _load(place: Location, kind: str, file: str | IO[bytes], mmap_mode: Literal["r"] | None = None) -> Any:
    """An array, or a dictionary of them."""
    try:
        _check_unpacked(file, place)
        loaded = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except SourceError:
        raise
    except Exception:  # a damaged zip file can fail in any way, and NumPy's advice is to load it unsafely
        raise SourceError(
            f"{place.label} is not a readable {kind} file of numbers: it is damaged, cut off, or has "
            "arrays of objects, which must be saved as numbers"
        ) from None


def _check_unpacked(file: str | IO[bytes], place: Location) -> None:
    """Refuse a zip file whose arrays unpack to more than images do, or say that they are larger."""
    is_packed = zipfile.is_zipfile(file)
    if not isinstance(file, str):
        file.seek(0)
    if not is_packed:
        return
    with zipfile.ZipFile(file) as packed:
        most = most_unpacked(sum(entry.compress_size for entry in packed.infolist()))
        unpacked = 0
        for entry in packed.infolist():
            with packed.open(entry) as array:
                unpacked += max(entry.file_size, _array_bytes(array))
    if unpacked > most:
        raise SourceError(
            f"{place.label} unpacks to {size_text(unpacked)}, far more than images do: save it unpacked"
        )
    if not isinstance(file, str):
        file.seek(0)


def _array_bytes(file: IO[bytes]) -> int:
    """How many bytes an array says it has; 0 for what is no array."""
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
    except ValueError:
        return 0
    return math.prod(map(int, shape)) * dtype.itemsize


def _arrays_of(role: str, arrays: Mapping[str, npt.NDArray[Any]], place: Location) -> dict[str, Any]:
    """The images or the labels of each split: arrays with such a name, or else those that look like it."""
    found: dict[str, npt.NDArray[Any]] = {}
    for split in sorted({_split_name(name) for name in arrays}):
        names = [name for name in arrays if _split_name(name) == split]
        named = [name for name in names if _role(name) == role]
        chosen = named or [
            name for name in names if _role(name) is None and _looks_like(role, arrays[name])
        ]
        if len(chosen) > 1:
            raise SourceError(
                f"{place.label}: {listed(chosen)} could each be the {role} of split '{split}': "
                f"name one of them {'x' if role == IMAGES else 'y'}_{split}"
            )
        if chosen:
            found[split] = arrays[chosen[0]]
    return found


def _looks_like(role: str, array: npt.NDArray[Any]) -> bool:
    if role == IMAGES:
        return array.ndim >= 3 and array.dtype.kind in "uif"
    return array.dtype.kind in "ui" and (array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1))


def _split_name(array: str) -> str:
    """'train' for x_train, train_images, y_train; 'train' too where no split is named.

    >>> [_split_name(name) for name in ("x_train", "test_labels", "images", "XVal", "latest")]
    ['train', 'test', 'train', 'val', 'train']
    """
    found = _SPLIT.search(array.lower())
    return found[1] if found else "train"


def _role(array: str) -> str | None:
    """What an array is, by its name without the split's; None where the name does not tell.

    >>> [_role(name) for name in ("x_train", "test_labels", "images", "yval", "arr_0")]
    ['images', 'labels', 'images', 'labels', None]
    """
    return _ROLES.get(_SPLIT.sub("", array.lower()).strip("_- "))
