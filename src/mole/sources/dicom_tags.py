"""Elements of DICOM headers as labels: which may be one, and what it says. It needs pydicom."""

import re

from pydicom.datadict import dictionary_VR, keyword_for_tag, tag_for_keyword
from pydicom.dataset import Dataset
from pydicom.multival import MultiValue

from mole.errors import ParameterError
from mole.foreign_text import shown

MAX_LABEL = 1024  # characters: DICOM's own limit for a line of text is 64, for a paragraph 1,024

# An element may be a label where its value is a code from a list of the standard. Any other kind can hold a
# name, a number, a day or free text, and a label made of one tells whose images are one person's.
CODE = "CS"
BY_DEVICES = ("Manufacturer", "ManufacturerModelName", "ConvolutionKernel")  # text that no person types
PERSONAL = re.compile(
    r"IDs?$|Identifier|Number|Patient|Subject|Person|Physician|Operator|Name|Date|Time|Address|Comment|History"
    r"|ContentLabel|Selector|CharacterSet"
)
_HEX = "([0-9a-fA-F]{4})"
_NUMBERS = (re.compile(rf"{_HEX},?\s?{_HEX}"), re.compile(rf"\({_HEX},\s?{_HEX}\)"))


def label_tag(text: str) -> int:
    """The number of an element that may be a label, from its keyword or its number in text.

    >>> hex(label_tag("BodyPartExamined")), hex(label_tag("(0018,0015)"))
    ('0x180015', '0x180015')

    Raises:
        ParameterError: if there is no such element, or it might tell people apart.
    """
    word = text.strip()
    found = next(filter(None, (pattern.fullmatch(word) for pattern in _NUMBERS)), None)
    tag = int(found[1] + found[2], 16) if found else tag_for_keyword(word)
    if tag is None or not word:
        raise ParameterError(
            f"'{shown(text)}' is not a DICOM tag: write it as BodyPartExamined or as (0018,0015)"
        )
    if not _may_be_label(tag):
        name = keyword_for_tag(tag) or shown(word)
        raise ParameterError(
            f"{name} cannot be a label: only codes that describe an image can, such as BodyPartExamined, "
            "and labels made of anything else might tell whose images are whose: choose another tag, or "
            "give a table of labels"
        )
    return tag


def _may_be_label(tag: int) -> bool:
    """Whether an element is a code that says nothing of a person; of a private one nobody knows."""
    try:
        kind, keyword = dictionary_VR(tag), keyword_for_tag(tag)
    except KeyError:
        return False
    return keyword in BY_DEVICES or (kind == CODE and bool(keyword) and not PERSONAL.search(keyword))


def value_of(header: Dataset, tag: int) -> str:
    """The value of an element as text; several of them as DICOM writes them."""
    if tag not in header:
        return ""
    value = header[tag].value
    parts = list(value) if isinstance(value, MultiValue) else [value]
    if not all(isinstance(part, str | int | float) for part in parts):
        return ""
    text = "\\".join(str(part).strip() for part in parts)
    return text if len(text) <= MAX_LABEL else ""
