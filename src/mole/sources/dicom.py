"""DICOM files: a folder of them, arranged like a folder of images, or one file. Every frame is a sample.

Nothing but pixels comes out: headers, with all that they say about a patient, are never passed on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from mole.errors import MissingExtraError, SourceError
from mole.foreign_text import listed, shown
from mole.sources.image_folder import Files, arrange, file_names
from mole.sources.images import SUFFIXES as IMAGE_SUFFIXES
from mole.sources.images import decoder_reason
from mole.sources.label_matching import FoundLabels, labels_of
from mole.sources.reading import Bits, Reading, Window
from mole.sources.row_matching import Row
from mole.sources.source import BadSampleError, Labels, Outline, Sample, Source
from mole.storage.locations import FileMark, Location, fingerprint

SUFFIX = ".dcm"
PREAMBLE, MAGIC = 128, b"DICM"
READERS = 8  # headers are small: over a network, waiting is all there is to it


@dataclass(frozen=True)
class FrameSplit:
    """A split whose samples are the frames of DICOM files; `unusable` says which are not, and why."""

    folder: Location
    frames: tuple[tuple[str, int], ...]
    labels: Labels | None
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    window: Window | None = None
    bits: Bits = 8
    unusable: Mapping[str, str] = field(default_factory=dict)
    outlines: dict[str, Outline | None] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.frames)

    def read(self, index: int) -> Sample:
        """One frame as a screen would show it."""
        path, frame = self.frames[index]
        with self._told_of(index), _at(self.folder, path).open() as file:
            pixels = _pydicom(self.folder)[2].decode(file, frame, window=self.window, bits=self.bits)
        return Sample(pixels, "hw" if pixels.ndim == 2 else "hwc")

    def outline(self, index: int) -> Outline | None:
        """What the header tells, which is the same for every frame of a file."""
        path, _ = self.frames[index]
        if path not in self.outlines:
            with self._told_of(index), _at(self.folder, path).open() as file:
                self.outlines[path] = _pydicom(self.folder)[2].outline(file, self.bits)
        return self.outlines[path]

    @contextmanager
    def _told_of(self, index: int) -> Iterator[None]:
        """Say of a frame what is wrong with it."""
        path, _ = self.frames[index]
        if path in self.unusable:
            raise BadSampleError(self.name_of(index), self.unusable[path])
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


def open_dicom(
    place: Location, files: Mapping[str, FileMark], reading: Reading, others: Iterable[str] = ()
) -> Source:
    """One DICOM file, or those of a folder; files without images, such as reports, are left out.

    Args:
        place: the file or the folder.
        files: the DICOM files.
        reading: what the provider said of it.
        others: the other files of the folder, a table of labels perhaps.
    """
    tags, headers, _ = _pydicom(place)
    tag = None if reading.label_tag is None else tags.label_tag(reading.label_tag)
    with ThreadPoolExecutor(READERS) as readers:
        answers = readers.map(lambda path: headers.facts_of(_at(place, path), files[path].size, tag), files)
        facts = {path: answer for path, answer in zip(files, answers, strict=True) if answer.frames}
    if not facts:
        raise SourceError(f"{place.label} has DICOM files without images: is it the right one?")
    found: FoundLabels | None
    if tag is not None:
        found = _labels_by_tag(place, facts, reading)
    else:
        uid_of = {path: fact.uid for path, fact in facts.items()}
        found = labels_of(place, others, list(facts), reading, uid_of=uid_of)
    if list(facts) == [place.path] and found is None:
        arranged, classes = {"train": Files((place.path,), None)}, None
    else:
        arranged, classes = arrange(place, facts, found, labels=reading.labels)
    frames = {path: fact.frames for path, fact in facts.items()}
    splits = {name: _split(place, part, frames, reading, found) for name, part in arranged.items()}
    print_of_files = fingerprint(place, {path: files[path] for path in facts})
    source = Source(
        "DICOM", splits, classes, reading.fingerprint_of(print_of_files), decodes=True,
        privacy_remark=headers.text_remark([fact.text for fact in facts.values()]),
    )  # fmt: skip
    return source if found is None else found.told_of(source)


def _labels_by_tag(place: Location, facts: Mapping[str, Any], reading: Reading) -> FoundLabels:
    """Labels from an element of each header; nobody knows that of a damaged file, which is not used."""
    tag = reading.label_tag or ""
    unlabelled = [path for path, fact in facts.items() if not fact.label]
    with ThreadPoolExecutor(READERS) as readers:
        damages = readers.map(lambda path: _damage(place, path, facts[path].damage), unlabelled)
        unusable = {path: why for path, why in zip(unlabelled, damages, strict=True) if why}
    if missing := [place.inside(path) or path for path in unlabelled if path not in unusable]:
        raise SourceError(
            f"{len(missing)} of {len(facts)} DICOM files have no {shown(tag)} that could be a label: "
            f"{listed(missing, 3)}: choose another tag, or give a table of labels"
        )
    rows = {path: Row(fact.label, {}) for path, fact in facts.items() if path not in unusable}
    return FoundLabels(rows, True, (f"the DICOM tag {shown(tag)}",), (tag,), unusable=unusable)


def _damage(place: Location, path: str, damage: str) -> str:
    """What is wrong with a file without a label, if something is."""
    try:
        if (frame := FrameSplit(place, ((path, 0),), None)).outline(0) is None:
            frame.read(0)
    except BadSampleError as error:
        return error.reason
    return damage and f"it is not a readable DICOM image ({damage})"


def _split(
    folder: Location, files: Files, frames: Mapping[str, int], reading: Reading, found: FoundLabels | None
) -> FrameSplit:
    counts = [frames[path] for path in files.paths]
    expanded = tuple((path, frame) for path in files.paths for frame in range(frames[path]))
    labels = None if files.labels is None else np.repeat(files.labels, counts)
    extra: dict[str, Sequence[Any]] = {
        name: [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
        for name, values in files.columns.items()
    }
    extra["file_name"] = file_names([path for path, _ in expanded])
    extra["frame"] = [frame for _, frame in expanded]
    unusable = {} if found is None else found.unusable
    return FrameSplit(folder, expanded, labels, extra, reading.window, reading.bits, unusable)


def _at(folder: Location, path: str) -> Location:
    """A file's place; where the source is one file, the source itself."""
    return folder if path == folder.path else folder.child(path)


def _pydicom(place: Location) -> tuple[ModuleType, ModuleType, ModuleType]:
    """What reads tags, headers and pixels with pydicom, an optional part."""
    try:
        from mole.sources import dicom_headers, dicom_pixels, dicom_tags  # noqa: PLC0415  (needs an extra)
    except ImportError:
        raise MissingExtraError(f"{place.label} holds DICOM files", "dicom") from None
    return dicom_tags, dicom_headers, dicom_pixels
