"""Stored DICOM pixels to what a screen shows: grey or RGB (DICOM PS3.3, C.7.6.3 and C.11), by pydicom.

Stored values are rescaled to the units of the modality (Hounsfield units, say), a window says which of them
become black and white, and what lies between is told apart in 8 or 16 bits.
"""

import zlib
from typing import IO, Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.errors import InvalidDicomError
from pydicom.filereader import read_dataset
from pydicom.pixels.processing import apply_color_lut, apply_modality_lut, apply_voi
from pydicom.pixels.utils import pixel_array
from pydicom.uid import DeflatedExplicitVRLittleEndian

from mole.limits import most_unpacked
from mole.sources.images import check_pixel_count
from mole.sources.reading import Bits, Window
from mole.sources.source import Outline

Pixels = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
Values = npt.NDArray[Any]

# Where files have their mark, and the group that pydicom would skip before it unpacks the rest.
MARK_AT, MARK, COMMANDS = 128, b"DICM", b"\0\0"
INVERTED = "MONOCHROME1"
META = 2  # the group of the header's first part
# What ends the pieces of compressed pixels, and how far from the end of the file it is looked for.
SEQUENCE_END, TAIL = b"\xfe\xff\xdd\xe0\0\0\0\0", 4096
# Where files with many frames keep what others have at the top of their header.
_FRAME_SEQUENCES = ("PixelValueTransformationSequence", "FrameVOILUTSequence")


def decode(file: IO[bytes], frame: int, *, window: Window | None = None, bits: Bits = 8) -> Pixels:
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
    pixels = _in_bits(displayed(stored, header, frame, window), bits)
    return np.iinfo(pixels.dtype).max - pixels if header.PhotometricInterpretation == INVERTED else pixels


def outline(file: IO[bytes], bits: Bits = 8) -> Outline | None:
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
        stored = sides[0] * sides[1] * samples * int(header.get("BitsAllocated") or 0)
        pixels_at = file.tell() + (8 if syntax.is_implicit_VR else 12)  # behind the element's own header
        is_whole = stored > 0 and file.seek(0, 2) - pixels_at >= stored // 8
    kind = header.get("PhotometricInterpretation")
    if not is_whole or not str(kind).startswith(("MONOCHROME", "RGB", "YBR", "PALETTE")):
        return None
    if str(kind).startswith("MONOCHROME"):
        return Outline(sides, "hw", f"uint{bits}")
    return Outline((*sides, 3), "hwc", f"uint{bits}")


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
        syntax = _transfer_syntax(cast(BinaryIO, file))
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


def _transfer_syntax(file: BinaryIO) -> Any:
    """How a file is stored, from the first part of its header; the file is then where that part ends.

    As pydicom does it: until an element of another group comes, and once more without types of values
    where those make no sense.
    """
    start = file.tell()
    for is_implicit in (False, True):
        file.seek(start)
        part = read_dataset(file, is_implicit, True, stop_when=lambda tag, vr, length: tag >> 16 != META)
        try:
            for element in part.elements():
                part[element.tag]  # tells whether its type makes sense
                break
        except NotImplementedError:
            continue
        break
    return part.get("TransferSyntaxUID")


def displayed(stored: Values, header: Dataset, frame: int, window: Window | None = None) -> Values:
    """One frame from its stored values: 0 to 1, and what lies beyond, (h, w) or (h, w, 3).

    It is brightness, but for files whose small values are bright, MONOCHROME1: darkness.
    """
    kind = header.PhotometricInterpretation
    if kind in (INVERTED, "MONOCHROME2"):
        return _grey(stored, _with_facts_of_frame(header, frame), window)
    if kind == "PALETTE COLOR":
        entries = apply_color_lut(stored, header)[..., :3]
        return np.asarray(entries / np.iinfo(entries.dtype).max)
    if stored.ndim == 3 and stored.shape[2] == 3:  # pydicom has turned YBR into RGB
        return np.asarray(stored / (2.0**header.BitsStored - 1))
    raise ValueError(f"its colours are '{kind}', which cannot be read")


def _grey(stored: Values, header: Dataset, window: Window | None) -> Values:
    values = apply_modality_lut(stored, header)
    if window is not None and window != "none":
        return _windowed(values.astype(np.float64), *window, None)
    first = _first_window(header)
    if window is None and first is not None:
        return _windowed(values.astype(np.float64), *first, header.get("VOILUTFunction"))
    if window is None and header.get("VOILUTSequence"):
        bits = header.VOILUTSequence[0].LUTDescriptor[2]
        return np.asarray(apply_voi(np.rint(values).astype(np.int64), header) / (2.0**bits - 1))
    low, high = _reach(header) if window == "none" else (float(values.min()), float(values.max()))
    return (values.astype(np.float64) - low) / ((high - low) or 1)


def _reach(header: Dataset) -> tuple[float, float]:
    """The least and the largest value that the file could store, in the units of the modality."""
    if header.get("ModalityLUTSequence"):
        return 0.0, 2.0 ** header.ModalityLUTSequence[0].LUTDescriptor[2] - 1
    bits, is_signed = int(header.BitsStored), bool(header.get("PixelRepresentation"))
    least = -(2.0 ** (bits - 1)) if is_signed else 0.0
    slope, intercept = (
        float(header.get(name) if header.get(name) is not None else usual)
        for name, usual in (("RescaleSlope", 1), ("RescaleIntercept", 0))
    )
    ends = (least * slope + intercept, (least + 2.0**bits - 1) * slope + intercept)
    return min(ends), max(ends)


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


def _in_bits(brightness: Values, bits: Bits) -> Pixels:
    """0 to 1, and what lies beyond, as 0 to 255 or to 65,535."""
    dtype = np.uint8 if bits == 8 else np.uint16
    pixels: Pixels = np.rint(np.clip(brightness, 0, 1) * np.iinfo(dtype).max).astype(dtype)
    return pixels
