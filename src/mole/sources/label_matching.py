"""Which row of a table of labels is about which file, and everything that does not fit, in one message.

    photos/metadata.csv            file_name,label: a table that is found by itself, at the top ...
    photos/train/metadata.csv      ... or in a folder, for the files below it
    labels.csv                     a table that the provider names

A row names a file by its path inside the folder, by its name or its name without the ending where only one
file has it, or a DICOM file by its SOPInstanceUID.
"""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mole.errors import SourceError
from mole.foreign_text import listed, shown
from mole.sources.label_tables import FILE_NAME, LABEL, LabelTable, NoNamesError, read_label_table
from mole.sources.reading import Reading
from mole.sources.source import Source
from mole.storage.locations import Location
from mole.storage.typed_json import is_text, is_whole

FOUND = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # as Hugging Face's ImageFolder has them
EXAMPLES = 3


class Row(NamedTuple):
    """What a table says of one file; `label` is None where it was not asked for one."""

    label: str | int | None
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class FoundLabels:
    """What tables say of the files of a folder.

    Attributes:
        rows: by the full path of each file that a table knows.
        has_labels: whether labels are among it.
        tables: names of the tables.
        digests: of their contents.
        unused: tables that look like such ones and are not, each with the reason.
    """

    rows: Mapping[str, Row]
    has_labels: bool
    tables: tuple[str, ...]
    digests: tuple[str, ...]
    unused: tuple[str, ...] = ()

    def told_of(self, source: Source) -> Source:
        """A source that was arranged by these tables, which says so, and changes with them."""
        return replace(
            source,
            fingerprint=hashlib.sha256("\n".join((source.fingerprint, *self.digests)).encode()).hexdigest()
            if self.digests
            else source.fingerprint,
            labels_from=", ".join(self.tables) if self.has_labels else None,
            remarks=(*source.remarks, *self.unused),
        )


def labels_of(
    folder: Location,
    files: Iterable[str],
    samples: Sequence[str],
    reading: Reading,
    uid_of: Mapping[str, str] | None = None,
) -> FoundLabels | None:
    """What the table that the provider names, or those that lie in the folder, say of its samples.

    Args:
        folder: the folder.
        files: every file in it, by full path.
        samples: those that are images.
        reading: what the provider said.
        uid_of: the SOPInstanceUID of DICOM files by their paths.

    Raises:
        SourceError: with all that does not fit, if something does not.
    """
    unused: list[str] = []
    if reading.table is not None:
        tables = {folder.path: read_label_table(Location.of(reading.table))}
    else:
        tables = _tables_in(folder, files, unused)
    if not tables:
        if reading.label_column is not None:
            raise SourceError(
                f"{folder.label} has no table with a column '{shown(reading.label_column)}': name one",
                advice={"labels": "labels.csv"},
            )
        return FoundLabels({}, False, (), (), tuple(unused)) if unused else None
    rows: dict[str, Row] = {}
    wrong: list[str] = []
    for base, governed in _governed(tables, samples).items():
        matching = _Matching(folder, base, tables[base], governed, uid_of=uid_of or {}, reading=reading)
        rows.update(matching.rows)
        prefix = f"{tables[base].label}: " if len(tables) > 1 else ""
        wrong += [f"{prefix}{line}" for line in matching.mistakes()]
    labels = [table.label for table in tables.values()]
    if wrong and reading.labels:
        what = f"{labels[0]} does" if len(labels) == 1 else f"the tables of labels ({listed(labels)}) do"
        raise SourceError(f"{what} not fit the images of {folder.label}: correct this", lines=wrong)
    has_labels = any(row.label is not None for row in rows.values())
    digests = tuple(table.digest for table in tables.values())
    return FoundLabels(rows, has_labels, tuple(labels), digests, tuple(unused))


def _tables_in(folder: Location, files: Iterable[str], unused: list[str]) -> dict[str, LabelTable]:
    """The tables that lie in a folder, by the folder that each is in."""
    places: dict[str, Location] = {}
    for path in files:
        above, _, name = path.rpartition("/")
        if name.lower() in FOUND:
            if above in places:
                raise SourceError(
                    f"{folder.child(path).label} and {places[above].name} lie in one folder: remove one"
                )
            places[above] = folder.child(path)
    tables = {}
    for above, place in places.items():
        try:
            tables[above] = read_label_table(place, key=FILE_NAME)
        except NoNamesError:
            unused.append(f"{place.label} is not used: it has no column '{FILE_NAME}'")
    return tables


def _governed(tables: Iterable[str], samples: Iterable[str]) -> dict[str, list[str]]:
    """The samples that each table is about: those below its folder, and not below a nearer one's."""
    nearest_first = sorted(tables, key=len, reverse=True)
    governed: dict[str, list[str]] = {base: [] for base in nearest_first}
    for path in samples:
        base = next((base for base in nearest_first if path.startswith(f"{base}/") or path == base), None)
        if base is not None:
            governed[base].append(path)
    return governed


class _Matching:
    """One table against the files that it is about."""

    def __init__(
        self,
        folder: Location,
        base: str,
        table: LabelTable,
        paths: Sequence[str],
        *,
        uid_of: Mapping[str, str],
        reading: Reading,
    ) -> None:
        self._table, self._paths, self._folder = table, paths, folder
        self._prefixes = (f"{base}/", f"{folder.label.rstrip('/')}/")
        self._inside = {path: path.removeprefix(f"{base}/") for path in paths}
        self._index = _index(self._inside, uid_of)
        self._wrong: dict[str, list[object]] = defaultdict(list)
        self.rows: dict[str, Row] = {}
        wanted = reading.label_column or LABEL
        self._column = table.column(wanted) if reading.labels else None
        is_asked_for = reading.table is not None or reading.label_column is not None
        self._missing = wanted if self._column is None and is_asked_for and reading.labels else None
        self._match()

    def mistakes(self) -> list[str]:
        """A line for each kind of mistake, with how many there are and a few of them."""
        lines = []
        if self._missing is not None:
            columns = listed(self._table.columns) or "nothing but names"
            lines.append(f"no column '{shown(self._missing)}': it has {columns}")
        lines += [
            f"{what} ({len(found)}): {listed(found, EXAMPLES)}" for what, found in self._wrong.items()
        ]
        return lines

    def _match(self) -> None:
        columns = self._table.columns
        others = [name for name in columns if name != self._column]
        if self._table.ragged:
            lines = [f"line {number}" for number in self._table.ragged]
            self._wrong["more or fewer cells than the first line has"] += lines
        for number, name in enumerate(self._table.names):
            found = self._find(name)
            if len(found) != 1:
                what = "in the table, but not in the folder" if not found else "several files of that name"
                self._wrong[what].append(name or f"row {number + 1}, which names no file")
                continue
            label = self._label(columns[self._column][number], name) if self._column else None
            row = Row(label, {column: columns[column][number] for column in others})
            if (before := self.rows.get(found[0], row)) != row:
                what = "two labels for one image" if before.label != label else "two rows for one image"
                self._wrong[what].append(name)
            self.rows[found[0]] = row
        if unknown := [self._inside[path] for path in self._paths if path not in self.rows]:
            self._wrong["in the folder, but not in the table"] += unknown

    def _label(self, value: Any, name: str) -> str | int | None:
        if isinstance(value, bool):
            return str(value).lower()
        if value is None or (isinstance(value, str) and not value.strip()):
            self._wrong["no label"].append(name)
        elif is_text(value) or is_whole(value):
            return value.strip() if isinstance(value, str) else int(value)
        else:
            self._wrong["a label that is neither text nor a whole number"].append(name)
        return None

    def _find(self, name: str) -> Sequence[str]:
        """The files that a name fits."""
        plain = unicodedata.normalize("NFC", name)
        for spelling in (plain, plain.replace("\\", "/").removeprefix("./")):
            for prefix in ("", *self._prefixes):
                if found := self._index.get(spelling.removeprefix(prefix)):
                    return found
        return ()


def _index(inside: Mapping[str, str], uid_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Files by every name that could mean one of them; a whole path always means its file."""
    index: dict[str, list[str]] = {}
    for spell in (_path, _name, _stem):
        found: dict[str, list[str]] = defaultdict(list)
        for path, short in inside.items():
            found[unicodedata.normalize("NFC", spell(short))].append(path)
        index = {**found, **index}
    by_uid: dict[str, list[str]] = defaultdict(list)
    for path in inside:
        if path in uid_of:
            by_uid[uid_of[path]].append(path)
    return {**by_uid, **index}


def _path(path: str) -> str:
    return path


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _stem(path: str) -> str:
    name = _name(path)
    return name.rpartition(".")[0] or name
