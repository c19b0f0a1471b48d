"""How a source is to be read, where its files alone do not say: which labels, which grey values.

A `Reading` is plain values: it travels to other machines, and names itself in a source's fingerprint.
"""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from os import PathLike, fspath
from typing import Literal, get_args

from mole.errors import ParameterError
from mole.storage.locations import absolute

Window = tuple[float, float] | Literal["none"]
"""Which values of a DICOM file become black and white: a centre and a width, or all that it can hold."""
Bits = Literal[8, 16]
"""How finely the values of a DICOM file are told apart."""
BITS: tuple[Bits, ...] = get_args(Bits)


@dataclass(frozen=True)
class Reading:
    """What the provider says of its data.

    >>> Reading.of("labels.csv", window=(40, 400)).of_dicom_only
    ['window']

    Attributes:
        table: path or URL of a table of labels; None to look for one beside the images.
        labels: whether labels are wanted at all.
        label_column: which column of the table has the labels; None for 'label'.
        label_tag: the DICOM element whose value is the label, by keyword or number.
        window: of DICOM files; None for the first one that a file names itself.
        bits: of DICOM files.
    """

    table: str | None = None
    labels: bool = True
    label_column: str | None = None
    label_tag: str | None = None
    window: Window | None = None
    bits: Bits = 8

    def __post_init__(self) -> None:
        if self.bits not in BITS:
            raise ParameterError(f"{self.bits} bits cannot be read: use 8 or 16")
        if self.label_tag is not None and (self.table is not None or self.label_column is not None):
            raise ParameterError(
                "labels come from a table or from a DICOM tag, not from both: leave one out"
            )
        if self.window is not None and self.window != "none":
            centre, width = self.window
            if not (math.isfinite(centre) and math.isfinite(width) and width > 1):
                raise ParameterError(
                    f"a window of centre {centre:g} and width {width:g} cannot be used: "
                    "give finite numbers, and a width above 1"
                )

    @classmethod
    def of(
        cls,
        labels: bool | str | PathLike[str] | None = None,
        *,
        label_column: str | None = None,
        label_tag: str | None = None,
        window: Window | None = None,
        bits: Bits = 8,
    ) -> "Reading":
        """From what a caller gives: `labels` is False for none, or where a table of them is."""
        table = None if labels is None or isinstance(labels, bool) else fspath(labels)
        return cls(table, labels is not False, label_column, label_tag, window, bits)

    @property
    def of_dicom_only(self) -> list[str]:
        """The parameters that were given and mean nothing but for DICOM files."""
        given = {"label_tag": self.label_tag, "window": self.window, "bits": self.bits != 8}
        return [name for name, value in given.items() if value]

    @property
    def for_other_processes(self) -> "Reading":
        """The same, with a path that means the same to every process on this machine."""
        return self if self.table is None else replace(self, table=absolute(self.table))

    @property
    def is_default(self) -> bool:
        """Whether nothing was said."""
        return self == Reading()

    def fingerprint_of(self, fingerprint: str) -> str:
        """A source's fingerprint, changed by what was said of its grey values."""
        if self.window is None and self.bits == 8:
            return fingerprint
        said = json.dumps([fingerprint, asdict(self)["window"], self.bits])
        return hashlib.sha256(said.encode()).hexdigest()
