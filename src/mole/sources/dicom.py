"""DICOM files: a folder of them, arranged like a folder of images, or one file. Every frame is a sample.

Nothing but pixels comes out: headers, with all that they say about a patient, are never passed on.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from mole.errors import MissingExtraError, SourceError
from mole.sources.image_folder import Files, arrange, file_names
from mole.sources.images import SUFFIXES as IMAGE_SUFFIXES
from mole.sources.images import decoder_reason
from mole.sources.source import BadSampleError, Labels, Outline, Sample, Source
from mole.storage.locations import FileMark, Location, fingerprint

SUFFIX = ".dcm"
PREAMBLE, MAGIC = 128, b"DICM"
READERS = 8  # headers are small: over a network, waiting is all there is to it


@dataclass(frozen=True)
class FrameSplit:
    """A split whose samples are the frames of DICOM files."""

    folder: Location
    frames: tuple[tuple[str, int], ...]
    labels: Labels | None
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    outlines: dict[str, Outline | None] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.frames)

    def read(self, index: int) -> Sample:
        """One frame as a screen would show it."""
        path, frame = self.frames[index]
        with self._told_of(index), _at(self.folder, path).open() as file:
            pixels = _pydicom(self.folder).decode(file, frame)
        return Sample(pixels, "hw" if pixels.ndim == 2 else "hwc")

    def outline(self, index: int) -> Outline | None:
        """What the header tells, which is the same for every frame of a file."""
        path, _ = self.frames[index]
        if path not in self.outlines:
            with self._told_of(index), _at(self.folder, path).open() as file:
                self.outlines[path] = _pydicom(self.folder).outline(file)
        return self.outlines[path]

    @contextmanager
    def _told_of(self, index: int) -> Iterator[None]:
        """Say of a frame what is wrong with it."""
        path, _ = self.frames[index]
        try:
            yield
        except SourceError as error:
            label = _at(self.folder, path).label
            raise BadSampleError(self.name_of(index), error.message.removeprefix(f"{label} ")) from None
        except Exception as error:  # a decoder can fail in any way on a damaged file
            raise BadSampleError(
                self.name_of(index), f"it is not a readable DICOM image ({decoder_reason(error)})"
            ) from None

    def name_of(self, index: int) -> str:
        """The file's name, and the frame's number."""
        path, frame = self.frames[index]
        return f"{_at(self.folder, path).label} (frame {frame})"


def is_dicom(place: Location) -> bool:
    """Whether a file is DICOM, by its name or its first bytes."""
    return place.name.lower().endswith(SUFFIX) or place.start(PREAMBLE + 4)[PREAMBLE:] == MAGIC


def dicom_files(folder: Location, files: Mapping[str, FileMark]) -> dict[str, FileMark]:
    """Those files of a folder that are DICOM."""
    possible = [
        path
        for path, mark in files.items()
        if path.lower().endswith(SUFFIX)
        or (mark.size > PREAMBLE + 4 and not path.lower().endswith(IMAGE_SUFFIXES))
    ]
    with ThreadPoolExecutor(READERS) as readers:
        answers = readers.map(lambda path: is_dicom(folder.child(path)), possible)
        return {path: files[path] for path, answer in zip(possible, answers, strict=True) if answer}


def open_dicom(place: Location, files: Mapping[str, FileMark]) -> Source:
    """One DICOM file, or those of a folder; files without images, such as reports, are left out."""
    count_frames = _pydicom(place).count_frames
    with ThreadPoolExecutor(READERS) as readers:
        counts = readers.map(lambda path: count_frames(_at(place, path), files[path].size), files)
        frames = {path: count for path, count in zip(files, counts, strict=True) if count}
    if not frames:
        raise SourceError(f"{place.label} has DICOM files without images: is it the right one?")
    if list(frames) == [place.path]:
        arranged, classes = {"train": Files((place.path,), None)}, None
    else:
        arranged, classes = arrange(place, frames)
    splits = {name: _split(place, files, frames) for name, files in arranged.items()}
    used = {path: files[path] for path in frames}
    return Source("DICOM", splits, classes, fingerprint(place, used), decodes=True)


def _split(folder: Location, files: Files, frames: Mapping[str, int]) -> FrameSplit:
    counts = [frames[path] for path in files.paths]
    expanded = tuple((path, frame) for path in files.paths for frame in range(frames[path]))
    labels = None if files.labels is None else np.repeat(files.labels, counts)
    extra: dict[str, Sequence[Any]] = {
        "file_name": file_names([path for path, _ in expanded]),
        "frame": [frame for _, frame in expanded],
    }
    return FrameSplit(folder, expanded, labels, extra)


def _at(folder: Location, path: str) -> Location:
    """A file's place; where the source is one file, the source itself."""
    return folder if path == folder.path else folder.child(path)


def _pydicom(place: Location) -> ModuleType:
    """What reads DICOM with pydicom, an optional part."""
    try:
        from mole.sources import dicom_pixels  # noqa: PLC0415  (needs an extra)
    except ImportError:
        raise MissingExtraError(
            f"{place.label} holds DICOM files: pip install 'morphed-learning[dicom]'"
        ) from None
    return dicom_pixels
