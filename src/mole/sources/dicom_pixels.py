"""Stored DICOM pixels to what a screen shows: 8-bit grey or RGB (DICOM PS3.3, C.7.6.3 and C.11).

All that needs pydicom is here.
"""

import zlib
from typing import IO, Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.errors import InvalidDicomError
from pydicom.filereader import _read_file_meta_info
from pydicom.pixels.processing import apply_color_lut, apply_modality_lut, apply_voi
from pydicom.pixels.utils import pixel_array
from pydicom.uid import UID, DeflatedExplicitVRLittleEndian

from mole.errors import SourceError
from mole.limits import LEAST_FRAME_BYTES, MAX_FRAMES, most_unpacked
from mole.sources.images import check_pixel_count
from mole.sources.source import Outline
from mole.storage.locations import Location

Pixels = npt.NDArray[np.uint8]
Values = npt.NDArray[Any]

# Where files have their mark, and the group that pydicom would skip before it unpacks the rest.
MARK_AT, MARK, COMMANDS = 128, b"DICM", b"\0\0"
# What ends the pieces of compressed pixels, and how far from the end of the file it is looked for.
SEQUENCE_END, TAIL = b"\xfe\xff\xdd\xe0\0\0\0\0", 4096
# Where files with many frames keep what others have at the top of their header.
_FRAME_SEQUENCES = ("PixelValueTransformationSequence", "FrameVOILUTSequence")


def count_frames(place: Location, size: int) -> int:
    """Number of frames in a file of so many bytes: 0 if it is of a kind without images.

    A file that cannot be understood counts as one frame, so that reading it tells what is wrong.

    Raises:
        SourceError: if it says that it has more frames than it can hold.
    """
    frames = _frames_said(place)
    if frames > min(MAX_FRAMES, max(1, size // LEAST_FRAME_BYTES)):
        raise SourceError(
            f"{place.label} says that it has {frames} frames, in {size} bytes: it is damaged, get it again"
        )
    return frames


def _frames_said(place: Location) -> int:
    try:
        with place.open() as file:
            check_deflated(file)
            header = dcmread(
                file, stop_before_pixels=True, specific_tags=["NumberOfFrames", "Rows", "SOPClassUID"]
            )
        kind = UID(header.get("SOPClassUID") or header.file_meta.get("MediaStorageSOPClassUID") or "")
        if "Rows" not in header and kind and "Image" not in kind.name:
            return 0
        return max(1, int(header.get("NumberOfFrames") or 1))
    except Exception:  # a damaged header can fail in any way
        return 1


def decode(file: IO[bytes], frame: int) -> Pixels:
    """One frame of a file; a decoder may raise anything about a damaged one."""
    check_deflated(file)
    try:
        header = dcmread(file, stop_before_pixels=True)
    except InvalidDicomError:
        raise ValueError("it does not begin as DICOM files do") from None
    check_pixel_count(int(header.get("Rows") or 0), int(header.get("Columns") or 0))
    file.seek(0)
    syntax = header.file_meta.get("TransferSyntaxUID")
    if syntax is None:
        raise ValueError("it does not say how its pixels are stored")
    # Out of many frames pydicom can read just one, but not where the whole file is packed.
    reads_one = int(header.get("NumberOfFrames") or 1) > 1 and not syntax.is_deflated
    stored = pixel_array(cast(BinaryIO, file) if reads_one else dcmread(file), index=frame)
    return displayed(stored, header, frame)


def outline(file: IO[bytes]) -> Outline | None:
    """What every frame of a file will be, by its header; None where only decoding tells.

    That is so too where pixels seem to be missing at the end.
    """
    check_deflated(file)
    header = dcmread(file, stop_before_pixels=True)
    sides = int(header.get("Rows") or 0), int(header.get("Columns") or 0)
    syntax = header.file_meta.get("TransferSyntaxUID")
    check_pixel_count(*sides)
    if syntax is None or syntax.is_deflated or not all(sides):
        return None
    if syntax.is_encapsulated:
        file.seek(max(0, file.seek(0, 2) - TAIL))
        is_whole = SEQUENCE_END in file.read()
    else:
        samples = int(header.get("SamplesPerPixel") or 1) * int(header.get("NumberOfFrames") or 1)
        bits = sides[0] * sides[1] * samples * int(header.get("BitsAllocated") or 0)
        pixels_at = file.tell() + (8 if syntax.is_implicit_VR else 12)  # behind the element's own header
        is_whole = bits > 0 and file.seek(0, 2) - pixels_at >= bits // 8
    kind = header.get("PhotometricInterpretation")
    if not is_whole or not str(kind).startswith(("MONOCHROME", "RGB", "YBR", "PALETTE")):
        return None
    if str(kind).startswith("MONOCHROME"):
        return Outline(sides, "hw", "uint8")
    return Outline((*sides, 3), "hwc", "uint8")


def check_deflated(file: IO[bytes]) -> None:
    """Refuse a file that is packed as a whole and unpacks to far more than images do; back to its start.

    pydicom unpacks such a file in one go, whatever comes of it. That it is packed stands in the first part
    of the header, which never is. The part's own word for its length is not what pydicom goes by, so its
    end is found as pydicom finds it.
    """
    size = file.seek(0, 2)
    file.seek(MARK_AT)
    syntax = None
    if file.read(len(MARK)) == MARK:  # pydicom refuses others
        syntax = _read_file_meta_info(cast(BinaryIO, file)).get("TransferSyntaxUID")
    if syntax == DeflatedExplicitVRLittleEndian:
        start = file.tell()
        if file.read(2) == COMMANDS:
            raise ValueError("it has commands where its packed part should begin")
        file.seek(start)
        unpacker, left = zlib.decompressobj(-zlib.MAX_WBITS), most_unpacked(size)
        while left > 0 and not unpacker.eof and (block := unpacker.unconsumed_tail or file.read(1 << 16)):
            left -= len(unpacker.decompress(block, 1 << 20))
        if left <= 0:
            raise ValueError("it unpacks to far more than images do")
    file.seek(0)


def displayed(stored: Values, header: Dataset, frame: int) -> Pixels:
    """Pixels of one frame, (h, w) or (h, w, 3), from stored values in grey, RGB or palette entries."""
    kind = header.PhotometricInterpretation
    if kind in ("MONOCHROME1", "MONOCHROME2"):
        grey = _grey(stored, _with_facts_of_frame(header, frame))
        return 255 - grey if kind == "MONOCHROME1" else grey
    if kind == "PALETTE COLOR":
        entries = apply_color_lut(stored, header)[..., :3]
        return _eight_bits(entries / np.iinfo(entries.dtype).max)
    if stored.ndim == 3 and stored.shape[2] == 3:  # pydicom has turned YBR into RGB
        return _eight_bits(stored / (2.0**header.BitsStored - 1))
    raise ValueError(f"its colours are '{kind}', which cannot be read")


def _grey(stored: Values, header: Dataset) -> Pixels:
    values = apply_modality_lut(stored, header)
    window = _first_window(header)
    if window is not None:
        return _eight_bits(_windowed(values.astype(np.float64), *window, header.get("VOILUTFunction")))
    if header.get("VOILUTSequence"):
        bits = header.VOILUTSequence[0].LUTDescriptor[2]
        return _eight_bits(apply_voi(np.rint(values).astype(np.int64), header) / (2.0**bits - 1))
    low, high = float(values.min()), float(values.max())
    return _eight_bits((values.astype(np.float64) - low) / ((high - low) or 1))


def _first_window(header: Dataset) -> tuple[float, float] | None:
    centres, widths = (_numbers(header.get(name)) for name in ("WindowCenter", "WindowWidth"))
    return (centres[0], widths[0]) if centres and widths else None


def _numbers(value: Any) -> list[float]:
    """The numbers of an element that may be missing, empty, one or several."""
    if value is None or value == "":
        return []
    return [float(value)] if isinstance(value, int | float | str) else [float(number) for number in value]


def _windowed(values: Values, centre: float, width: float, function: str | None) -> Values:
    """Values through a window, 0 to 1 (C.11.2.1.2 and C.11.2.1.3)."""
    if function == "SIGMOID" and width > 0:
        return np.asarray(0.5 + 0.5 * np.tanh(2 * (values - centre) / width))
    if function == "LINEAR_EXACT" and width > 0:
        return (values - centre) / width + 0.5
    if function in (None, "", "LINEAR") and width > 1:
        return (values - (centre - 0.5)) / (width - 1) + 0.5
    if function in (None, "", "LINEAR") and width == 1:
        return (values > centre - 0.5).astype(np.float64)
    raise ValueError(
        f"its window is {width:g} wide and of kind {function or 'LINEAR'}, which cannot be used"
    )


def _with_facts_of_frame(header: Dataset, frame: int) -> Dataset:
    """The header with what its functional groups say of one frame brought to the top."""
    merged = Dataset()
    merged.update(header)
    merged.file_meta = header.file_meta
    shared, each = (
        header.get(f"{which}FunctionalGroupsSequence") or [] for which in ("Shared", "PerFrame")
    )
    for groups in [*shared[:1], *each[frame : frame + 1]]:
        for name in _FRAME_SEQUENCES:
            for item in (groups.get(name) or [])[:1]:
                merged.update(item)
    return merged


def _eight_bits(brightness: Values) -> Pixels:
    """0 to 1, and what lies beyond, as 0 to 255."""
    pixels: Pixels = np.rint(np.clip(brightness, 0, 1) * 255).astype(np.uint8)
    return pixels
