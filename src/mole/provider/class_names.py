"""Which names of classes leave with a delivery, and whether labels do.

A class can be a person: hospitals keep a folder for each patient, and a folder's name is a class's name. So
names leave unasked only where they hardly can be people's:

- not where they are the folders of DICOM files, nor labels made of those, which tell whose images are one
  patient's; a table of labels or a tag that was asked for is another matter;
- not where there are more than a hundred classes;
- not where a class has fewer than five samples, the size below which health statistics leave a figure out;
- not where a name has the form of a patient's (Doe^Jane), or five digits in a row, as dates of birth do.
"""

import re
from typing import NamedTuple

import numpy as np

from mole.quantities import counted
from mole.sources.source import Source

MANY = 100  # classes: beyond, they may be people
FEW = 5  # samples: a class with fewer may be somebody
PATIENT = re.compile(r"\^|\d{5}")
PATIENTS = "folders of DICOM files are often named after patients"


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


def handed_over_by(class_names: bool | None) -> str:
    """Which parameter hands over what was kept: names were not wanted, or nothing was said of them."""
    return "labels" if class_names is False else "class_names"


def asked_for(labels: object) -> bool | None:
    """Whether labels are asked for: by a word, or by a table of them; None where nothing was said."""
    return labels if labels is None or isinstance(labels, bool) else True


def what_leaves(source: Source, *, class_names: bool | None = None, labels: bool | None = None) -> Leaving:
    """Decide it: as asked for, or by the rules above where `class_names` or `labels` is None.

    Asking for names is asking for the labels that they name; asking for no names is not.
    """
    if labels is False or source.classes is None or class_names:
        return Leaving(labels is not False, class_names is not False)
    are_folders = source.kind == "DICOM" and source.labels_from is None
    if are_folders and not labels:
        both = "their names stay here, and so do labels made of them"
        what = "labels made of them stay here" if class_names is False else both
        return Leaving(labels=False, class_names=False, kept=f"{PATIENTS}: {what}")
    if class_names is False:
        return Leaving(labels=True, class_names=False)
    if are_folders:
        return Leaving(labels=True, class_names=False, kept=f"{PATIENTS}: their names stay here")
    smallest = _smallest_class(source)
    if len(source.classes) > MANY:
        reason = "so many may be people's"
    elif smallest < FEW:
        reason = f"one of them has only {counted(smallest, 'sample')}, and may be a person's"
    elif any(map(PATIENT.search, source.classes)):
        reason = "one of them looks like the name or the number of a patient"
    else:
        return Leaving(labels=True, class_names=True)
    kept = f"the names of {counted(len(source.classes), 'class', 'classes')} stay here: {reason}"
    return Leaving(labels=True, class_names=False, kept=kept)


def _smallest_class(source: Source) -> int:
    """How many samples the smallest class has, over all splits; classes without any do not count."""
    found = [split.labels for split in source.splits.values() if split.labels is not None]
    if not found:
        return FEW
    labels = np.concatenate(found)
    counts = np.unique(labels[labels >= 0], return_counts=True)[1]  # those below zero have no name
    return int(counts.min()) if len(counts) else FEW
