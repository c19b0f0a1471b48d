"""What is asked of the header of a DICOM file before its pixels are read. It needs pydicom."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.uid import UID

from mole.errors import SourceError
from mole.limits import LEAST_FRAME_BYTES, MAX_FRAMES
from mole.quantities import size_text
from mole.sources.dicom_pixels import check_deflated
from mole.sources.dicom_tags import value_of
from mole.sources.images import decoder_reason
from mole.storage.locations import Location

ASKED = ("NumberOfFrames", "Rows", "SOPClassUID", "SOPInstanceUID", "Modality", "BurnedInAnnotation")

TextSource = Literal["says so", "ultrasound", "capture"]
ULTRASOUND, CAPTURE = ("US", "IVUS"), ("SC",)


class HeaderFacts(NamedTuple):
    """What a file says of itself.

    Attributes:
        frames: how many images it holds; 0 for a kind without any.
        uid: its SOPInstanceUID.
        text: why text may be burned into its pixels; None if nothing says so.
        label: the value of the element that was asked for; empty if it has none.
        damage: why it cannot be understood; empty if it can.
    """

    frames: int
    uid: str = ""
    text: TextSource | None = None
    label: str = ""
    damage: str = ""


def facts_of(place: Location, size: int, tag: int | None = None) -> HeaderFacts:
    """What the header of a file of so many bytes says, and the value of one element.

    A file that cannot be understood counts as one frame, so that reading it tells what is wrong.

    Raises:
        SourceError: if it says that it has more frames than it can hold.
    """
    try:
        with place.open() as file:
            check_deflated(file)
            asked: list[Any] = [*ASKED, *([] if tag is None else [tag])]
            facts = _facts(dcmread(file, stop_before_pixels=True, specific_tags=asked), tag)
    except Exception as error:  # a damaged header can fail in any way
        facts = HeaderFacts(1, damage=decoder_reason(error))
    if facts.frames > min(MAX_FRAMES, max(1, size // LEAST_FRAME_BYTES)):
        raise SourceError(
            f"{place.label} says that it has {facts.frames} frames, in {size_text(size)}: it is damaged, "
            "get it again"
        )
    return facts


def text_remark(reasons: Iterable[TextSource | None]) -> str:
    """A sentence about pixels that may show text, such as a patient's name; empty where none may.

    >>> text_remark(["capture", None, "says so"])[:74]
    '2 of 3 DICOM files may show text, such as a name (1 says so, 1 is a screen'
    """
    counts = Counter(reasons)
    total, words = counts.total(), []
    for reason, one, many in (
        ("says so", "says so", "say so"),
        ("ultrasound", "is ultrasound", "are ultrasound"),
        ("capture", "is a screen capture", "are screen captures"),
    ):
        if count := counts[reason]:  # type: ignore[index]
            words.append(f"{count} {one if count == 1 else many}")
    if not words:
        return ""
    return (
        f"{total - counts[None]} of {total} DICOM files may show text, such as a name "
        f"({', '.join(words)}): pixels leave with whatever text is burned into them"
    )


def _facts(header: Dataset, tag: int | None) -> HeaderFacts:
    kind = UID(header.get("SOPClassUID") or header.file_meta.get("MediaStorageSOPClassUID") or "")
    if "Rows" not in header and kind and "Image" not in kind.name:
        return HeaderFacts(0)
    return HeaderFacts(
        max(1, int(header.get("NumberOfFrames") or 1)),
        str(header.get("SOPInstanceUID") or ""),
        _text_source(header, kind),
        "" if tag is None else value_of(header, tag),
    )


def _text_source(header: Dataset, kind: UID) -> TextSource | None:
    modality = str(header.get("Modality") or "").upper()
    if str(header.get("BurnedInAnnotation") or "").strip().upper() == "YES":
        return "says so"
    if modality in ULTRASOUND or "Ultrasound" in kind.name:
        return "ultrasound"
    return "capture" if modality in CAPTURE or "Secondary Capture" in kind.name else None
