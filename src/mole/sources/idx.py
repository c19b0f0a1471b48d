"""MNIST's idx files, gzipped or not."""

import gzip
import io
import math
import re
import struct
import zlib
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from mole.errors import SourceError
from mole.limits import most_unpacked
from mole.sources.source import ArraySplit, Source, array_split
from mole.storage.locations import FileMark, Location, fingerprint

IDX_NAME = re.compile(r"(train|t10k|test)-(images|labels)[-.]idx[13]-ubyte(\.gz)?$")

BYTES = 8  # idx's number for its only type that MNIST uses


def open_idx(folder: Location, files: Iterable[str]) -> Source:
    """A folder of MNIST's files: train-images-idx3-ubyte(.gz) and so on."""
    found = {key: (place, place.read()) for key, place in _find(folder, files).items()}
    splits = {split: _split(found, split) for split in ("train", "test") if (split, "images") in found}
    used = {place.path: FileMark.of_content(content) for place, content in found.values()}
    return Source("idx", splits, None, fingerprint(folder, used))


def _find(folder: Location, files: Iterable[str]) -> dict[tuple[str, str], Location]:
    """The file of each split's images and labels; of a gzipped and a plain one, the plain."""
    found: dict[tuple[str, str], Location] = {}
    for path in sorted(files, reverse=True):
        match = IDX_NAME.search(path)
        if not match:
            continue
        key = ("train" if match[1] == "train" else "test", match[2])
        if key in found and found[key].path.removesuffix(".gz") != path.removesuffix(".gz"):
            raise SourceError(
                f"{folder.label} holds more than one data set ({folder.inside(path)} and "
                f"{folder.inside(found[key].path)}): give the folder of one"
            )
        found[key] = folder.child(path)
    return found


def _split(found: Mapping[tuple[str, str], tuple[Location, bytes]], split: str) -> ArraySplit:
    images, labels = found[split, "images"], found.get((split, "labels"))
    return array_split(_array(*images), None if labels is None else _array(*labels), images[0].label)


def _array(place: Location, content: bytes) -> npt.NDArray[np.uint8]:
    """The array in one idx file of bytes."""
    try:
        packed = content[:2] == b"\x1f\x8b"
        file = io.BytesIO(content)
        with gzip.GzipFile(fileobj=file) if packed else file as opened:
            zero, kind, axes = struct.unpack(">HBB", opened.read(4))
            shape = struct.unpack(f">{axes}I", opened.read(4 * axes))
            elements = math.prod(shape)
            if zero != 0 or kind != BYTES or not axes or elements > most_unpacked(len(content)):
                raise ValueError
            values = np.frombuffer(opened.read(elements + 1), dtype=np.uint8)  # one more would be too many
        return values.reshape(shape)
    except (struct.error, zlib.error, ValueError, OSError, EOFError):
        raise SourceError(
            f"{place.label} is not an idx file of bytes, or it is cut off: get it again"
        ) from None
