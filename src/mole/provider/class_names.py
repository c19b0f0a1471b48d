"""Which names of classes leave with a delivery, and whether labels do.

A class can be a person: hospitals keep a folder for each patient, and a folder's name is a class's name. So
names leave unasked only where they hardly can be people's:

- not from DICOM files, nor labels made of their folders, which tell whose images are one patient's;
- not where there are more than a hundred classes;
- not where a class has fewer than five samples, the size below which health statistics leave a figure out;
- not where a name has the form of a patient's (Doe^Jane), or five digits in a row, as dates of birth do.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mole.sources.source import Source

MANY = 100  # classes: beyond, they may be people
FEW = 5  # samples: a class with fewer may be somebody
PATIENT = re.compile(r"\^|\d{5}")
SHOWN = 5  # names are listed, and the rest is counted


class Leaving(NamedTuple):
    """What leaves beside the images.

    Attributes:
        labels: whether labels do, if there are any.
        class_names: whether names of classes do, if there are any.
        kept: what stays although nobody asked for that, and why; None where nothing does.
    """

    labels: bool
    class_names: bool
    kept: str | None = None


def what_leaves(source: Source, *, class_names: bool | None = None, labels: bool = True) -> Leaving:
    """Decide it: as asked for, or by the rules above where `class_names` is None."""
    if class_names is not None or not labels or source.classes is None:
        return Leaving(labels, class_names is not False)
    if source.kind == "DICOM":
        return Leaving(
            labels=False,
            class_names=False,
            kept="folders of DICOM files are often named after patients: their names stay here, and so do "
            "labels made of them",
        )
    smallest = _smallest_class(source)
    if len(source.classes) > MANY:
        reason = "so many may be people's"
    elif smallest < FEW:
        reason = f"one of them has only {smallest} samples, and may be a person's"
    elif any(map(PATIENT.search, source.classes)):
        reason = "one of them looks like the name or the number of a patient"
    else:
        return Leaving(labels, class_names=True)
    kept = f"the names of {len(source.classes)} classes stay here: {reason}"
    return Leaving(labels, class_names=False, kept=kept)


def listed(names: Sequence[str]) -> str:
    """The first few of some names, quoted, and how many more there are.

    >>> listed(["cat", "dog"]), listed(["a", "b", "c", "d", "e", "f", "g"])
    ("'cat', 'dog'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(_quoted, names[:SHOWN])) + more


def _smallest_class(source: Source) -> int:
    """How many samples the smallest class has, over all splits; classes without any do not count."""
    found = [split.labels for split in source.splits.values() if split.labels is not None]
    if not found:
        return FEW
    counts = np.unique(np.concatenate(found), return_counts=True)[1]
    return int(counts.min()) if len(counts) else FEW


def _quoted(name: str) -> str:
    """A name on one line: what a terminal would not print as it is, is escaped."""
    return repr(name if len(name) <= 40 else name[:39] + "…")
