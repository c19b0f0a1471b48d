"""Which row of a table of labels is about which file, and everything that does not fit, in one message.

    photos/metadata.csv            file_name,label: a table that is found by itself, at the top ...
    photos/train/metadata.csv      ... or in a folder, for the files below it
    labels.csv                     a table that the provider names

A row names a file by its path inside the folder, by its name or its name without the ending where only one
file has it, or a DICOM file by its SOPInstanceUID.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mole.errors import ProblemsError, SourceError
from mole.foreign_text import listed, shown
from mole.sources.label_tables import FILE_NAME, LABEL, LabelTable, NoNamesError, read_label_table
from mole.sources.reading import Reading
from mole.sources.row_matching import Row, RowMatching
from mole.sources.source import Source
from mole.storage.locations import Location

FOUND = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # as Hugging Face's ImageFolder has them


@dataclass(frozen=True)
class FoundLabels:
    """What tables say of the files of a folder.

    Attributes:
        rows: by the full path of each file that a table knows.
        has_labels: whether labels are among it.
        tables: names of those that gave labels.
        digests: of their contents, where they lie, and which column was read.
        remarks: tables that are not used, or do not fit and give no labels, each with the reason.
        unusable: files that should have a label and are too damaged to have one, each with the reason.
    """

    rows: Mapping[str, Row]
    has_labels: bool
    tables: tuple[str, ...]
    digests: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    unusable: Mapping[str, str] = field(default_factory=dict)

    def told_of(self, source: Source) -> Source:
        """A source that was arranged by these tables, which says so, and changes with them."""
        return replace(
            source,
            fingerprint=hashlib.sha256("\n".join((source.fingerprint, *self.digests)).encode()).hexdigest()
            if self.digests
            else source.fingerprint,
            labels_from=", ".join(self.tables) if self.has_labels else None,
            remarks=(*source.remarks, *self.remarks),
        )


def labels_of(
    folder: Location,
    files: Iterable[str],
    samples: Sequence[str],
    reading: Reading,
    *,
    uid_of: Mapping[str, str] | None = None,
    unread: Sequence[str] = (),
) -> FoundLabels | None:
    """What the table that the provider names, or those that lie in the folder, say of its samples.

    Args:
        folder: the folder.
        files: every file in it, by full path.
        samples: those that are images.
        reading: what the provider said.
        uid_of: the SOPInstanceUID of DICOM files by their paths.
        unread: files that are images, too, of kinds that cannot be read.

    Raises:
        SourceError: with all that does not fit, if something does not.
    """
    remarks: list[str] = []
    if reading.table is not None:
        tables = {folder.path: read_label_table(Location.of(reading.table))}
    else:
        tables = _tables_in(folder, files, remarks, labels=reading.labels)
    if not tables:
        if reading.label_column is not None:
            raise SourceError(
                f"{folder.label} has no table with a column '{shown(reading.label_column)}': name one",
                advice={"labels": "labels.csv"},
            )
        return FoundLabels({}, False, (), (), tuple(remarks)) if remarks else None
    rows: dict[str, Row] = {}
    wrong: list[SourceError] = []
    giving: list[str] = []
    others = _governed(tables, unread)
    for base, governed in _governed(tables, samples).items():
        matching = RowMatching(
            folder, base, tables[base], governed, uid_of=uid_of or {}, reading=reading, unread=others[base]
        )
        rows.update(matching.rows)
        if matching.gives_labels:
            giving.append(tables[base].label)
            prefix = f"{tables[base].label}: " if len(tables) > 1 else ""
            wrong += [
                SourceError(f"{prefix}{found.message}", advice=found.advice)
                for found in matching.mistakes()
            ]
        elif reading.labels:
            remarks += [
                f"{tables[base].label} does not fit its images: {found}" for found in matching.mistakes()
            ]
    if wrong:
        what = f"{giving[0]} does" if len(giving) == 1 else f"the tables of labels ({listed(giving)}) do"
        raise ProblemsError(f"{what} not fit the images of {folder.label}", wrong)
    has_labels = any(row.label is not None for row in rows.values())
    column = reading.label_column or LABEL
    digests = tuple(
        json.dumps([folder.inside(base), column, table.digest]) for base, table in tables.items()
    )
    return FoundLabels(rows, has_labels, tuple(giving), digests, tuple(remarks))


def _tables_in(
    folder: Location, files: Iterable[str], remarks: list[str], *, labels: bool
) -> dict[str, LabelTable]:
    """The tables that lie in a folder, by the folder that each is in; others get a remark.

    Raises:
        SourceError: if labels are wanted, and one cannot be read, or it is not clear which counts.
    """
    places: dict[str, list[Location]] = {}
    for path in files:
        above, _, name = path.rpartition("/")
        if name.lower() in FOUND:
            places.setdefault(above, []).append(folder.child(path))
    tables = {}
    for above, (place, *others) in places.items():
        try:
            if others:
                raise SourceError(f"{others[0].label} and {place.name} lie in one folder: remove one")
            tables[above] = read_label_table(place, key=FILE_NAME)
        except NoNamesError:
            remarks.append(f"{place.label} is not used: it has no column '{FILE_NAME}'")
        except SourceError as error:
            if labels:
                raise
            remarks.append(f"not used: {error.message}")
    return tables


def _governed(tables: Iterable[str], samples: Iterable[str]) -> dict[str, list[str]]:
    """The samples that each table is about: those below its folder, and not below a nearer one's."""
    governed: dict[str, list[str]] = {base: [] for base in tables}
    for path in samples:
        base = path
        while base and base not in governed:
            base = base.rpartition("/")[0]
        if base:
            governed[base].append(path)
    return governed
