"""DICOM files: a folder of them, arranged like a folder of images, or one file. Every frame is a sample.

Nothing but pixels comes out: headers, with all that they say about a patient, are never passed on.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, cast

import numpy as np

from mole.errors import MissingExtraError, SourceError
from mole.sources.image_folder import Files, arrange, file_names
from mole.sources.images import SUFFIXES as IMAGE_SUFFIXES
from mole.sources.source import BadSampleError, Labels, Sample, Source
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

    def __len__(self) -> int:
        return len(self.frames)

    def read(self, index: int) -> Sample:
        """One frame as a screen would show it."""
        path, frame = self.frames[index]
        try:
            with _at(self.folder, path).open() as file:
                pixels = _decode(file, frame)
        except SourceError as error:
            label = _at(self.folder, path).label
            raise BadSampleError(self.name_of(index), error.message.removeprefix(f"{label} ")) from None
        except Exception as error:  # a decoder can fail in any way on a damaged file
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BadSampleError(
                self.name_of(index), f"it is not a readable DICOM image ({reason})"
            ) from None
        return Sample(pixels, "hw" if pixels.ndim == 2 else "hwc")

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
    _check_installed(place)
    with ThreadPoolExecutor(READERS) as readers:
        counts = readers.map(lambda path: _count_frames(_at(place, path)), files)
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


def _count_frames(place: Location) -> int:
    """Number of frames in a file: 0 if it is of a kind without images.

    A file that cannot be understood counts as one frame, so that reading it tells what is wrong.
    """
    from pydicom import dcmread  # noqa: PLC0415
    from pydicom.uid import UID  # noqa: PLC0415

    try:
        with place.open() as file:
            header = dcmread(
                file, stop_before_pixels=True, specific_tags=["NumberOfFrames", "Rows", "SOPClassUID"]
            )
        kind = UID(header.get("SOPClassUID") or header.file_meta.get("MediaStorageSOPClassUID") or "")
        if "Rows" not in header and kind and "Image" not in kind.name:
            return 0
        return max(1, int(header.get("NumberOfFrames") or 1))
    except Exception:  # a damaged header can fail in any way
        return 1


def _decode(file: IO[bytes], frame: int) -> Any:
    from pydicom import dcmread  # noqa: PLC0415
    from pydicom.errors import InvalidDicomError  # noqa: PLC0415
    from pydicom.pixels.utils import pixel_array  # noqa: PLC0415

    from mole.sources.dicom_pixels import displayed  # noqa: PLC0415

    try:
        header = dcmread(file, stop_before_pixels=True)
    except InvalidDicomError:
        raise ValueError("it does not begin as DICOM files do") from None
    file.seek(0)
    syntax = header.file_meta.get("TransferSyntaxUID")
    if syntax is None:
        raise ValueError("it does not say how its pixels are stored")
    # Out of many frames pydicom can read just one, but not where the whole file is packed.
    reads_one = int(header.get("NumberOfFrames") or 1) > 1 and not syntax.is_deflated
    stored = pixel_array(cast(BinaryIO, file) if reads_one else dcmread(file), index=frame)
    return displayed(stored, header, frame)


def _check_installed(place: Location) -> None:
    try:
        import pydicom  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError(
            f"{place.label} holds DICOM files: pip install 'morphed-learning[dicom]'"
        ) from None
