"""Tables of labels: CSV, TSV, JSON lines or Parquet, with a row for each file.

One column says which file a row is about, one its label, and the others may be handed over.
"""

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mole.errors import SourceError
from mole.foreign_text import listed, shown
from mole.limits import MAX_TABLE_BYTES, MAX_TABLE_ROWS
from mole.sources.arrow_files import ParquetTable
from mole.storage.arrow_reading import UNREADABLE
from mole.storage.locations import Location
from mole.storage.typed_json import FormatError, parse_json

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
FILE_NAME = "file_name"  # what Hugging Face calls the column
# What others call it; the first that is there counts.
KEYS = (
    FILE_NAME, "filename", "file", "filepath", "file_path", "path", "image", "image_path", "image_name",
    "image_id", "sopinstanceuid", "sop_instance_uid", "name", "id",
)  # fmt: skip
LABEL = "label"
MAX_COLUMNS = 1024
DELIMITERS = ",;\t"
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


class NoNamesError(SourceError):
    """A table without a column that says which file a row is about."""


@dataclass(frozen=True)
class LabelTable:
    """A table that was read.

    Attributes:
        label: what to call it in a message.
        names: which file each row is about.
        columns: the other columns by name.
        digest: of its content.
        ragged: rows with more or fewer cells than the table has columns, by number.
    """

    label: str
    names: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    digest: str
    ragged: Sequence[int] = ()

    def column(self, name: str) -> str | None:
        """How the table itself spells a column; None if there is none."""
        return _spelt(self.columns, name)


def read_label_table(place: Location, *, key: str | None = None) -> LabelTable:
    """Read a table; its key column is the given one, or the first of the usual names.

    Raises:
        NoNamesError: if it has no such column.
        SourceError: if it is not there, is of another kind, or is damaged.
    """
    ending = "." + place.name.lower().rpartition(".")[2]
    if ending not in SUFFIXES:
        raise SourceError(
            f"{place.label} is not a table of labels: give a file that ends in {', '.join(SUFFIXES)}"
        )
    if ending == ".parquet":
        (columns, digest), ragged = _parquet(place), list[int]()
    else:
        content = place.read_at_most(MAX_TABLE_BYTES)
        digest = hashlib.sha256(content).hexdigest()
        read = _json_lines if ending == ".jsonl" else _csv
        columns, ragged = read(_text(content, place), place)
    wanted = KEYS if key is None else (key,)
    named = next((found for name in wanted if (found := _spelt(columns, name)) is not None), None)
    if named is None:
        raise NoNamesError(
            f"{place.label} has no column that says which file a row is about "
            f"(it has {listed(columns)}): call it {FILE_NAME}"
        )
    names = ["" if value is None else str(value).strip() for value in columns.pop(named)]
    return LabelTable(place.label, names, columns, digest, ragged)


def typed(values: Sequence[Any]) -> Sequence[Any]:
    """Cells as whole numbers or as numbers where all of them are; an empty one is nothing.

    >>> typed(["61", "", "7"]), typed(["0.5", "2"]), typed(["007", "8"])
    ([61, None, 7], [0.5, 2.0], ['007', '8'])
    """
    if not all(value is None or isinstance(value, str) for value in values):
        return values
    filled = [value for value in values if value]
    if filled and all(map(_WHOLE.fullmatch, filled)):
        return [int(value) if value else None for value in values]
    try:
        numbers = [float(value) if value else None for value in values]
    except ValueError:
        return list(values)
    is_code = any(
        value.lstrip("-").startswith("0") and value.lstrip("-")[1:2].isdigit() for value in filled
    )
    return list(values) if is_code or not filled else numbers


def _spelt(columns: Mapping[str, Any], name: str) -> str | None:
    if name in columns:
        return name
    return next((column for column in columns if column.lower() == name.lower()), None)


def _text(content: bytes, place: Location) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{place.label} is not text in UTF-8: save it as 'CSV UTF-8'") from None


def _csv(text: str, place: Location) -> tuple[dict[str, list[Any]], list[int]]:
    first = text.partition("\n")[0]
    delimiter = "\t" if place.name.lower().endswith(".tsv") else max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    ragged: list[int] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        for row in reader:
            if not any(map(str.strip, row)):  # a spreadsheet may end with some
                continue
            if len(rows) >= MAX_TABLE_ROWS:
                raise SourceError(f"{place.label} has more than {MAX_TABLE_ROWS} rows: split it")
            if len(row) == len(header):
                rows.append(row)
            else:
                ragged.append(reader.line_num)
    except csv.Error as error:
        raise SourceError(
            f"{place.label} cannot be read as a table: line {reader.line_num}: {shown(error)}: correct it"
        ) from None
    _check_header(header, place)
    cells = zip(*rows, strict=True) if rows else [()] * len(header)
    columns = {name: [cell.strip() for cell in column] for name, column in zip(header, cells, strict=True)}
    return columns, ragged


def _json_lines(text: str, place: Location) -> tuple[dict[str, list[Any]], list[int]]:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if len(rows) >= MAX_TABLE_ROWS:
            raise SourceError(f"{place.label} has more than {MAX_TABLE_ROWS} rows: split it")
        try:
            fields = parse_json(line)
        except FormatError as error:
            raise SourceError(f"{place.label}, line {number}: {error}: correct it") from None
        rows.append({name: fields.value(name) for name in fields.names()})
    names = list(dict.fromkeys(name for row in rows for name in sorted(row)))
    _check_header(names, place)
    return {name: [row.get(name) for row in rows] for name in names}, []


def _parquet(place: Location) -> tuple[dict[str, list[Any]], str]:
    table = ParquetTable([place], place.label)
    if table.num_rows > MAX_TABLE_ROWS:
        raise SourceError(f"{place.label} has more than {MAX_TABLE_ROWS} rows: split it")
    _check_header(table.column_names, place)
    try:
        columns = {name: table[name].to_pylist() for name in table.column_names}
    except UNREADABLE:
        raise SourceError(f"{place.label} holds what cannot be a table of labels: get it again") from None
    return columns, hashlib.sha256(place.read_at_most(MAX_TABLE_BYTES)).hexdigest()


def _check_header(header: Sequence[str], place: Location) -> None:
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if not any(header):
        raise SourceError(f"{place.label} is empty: give it a first line that names the columns")
    if len(header) > MAX_COLUMNS:
        raise SourceError(f"{place.label} has more than {MAX_COLUMNS} columns: leave some out")
    if twice:
        raise SourceError(f"{place.label} has two columns called {listed(twice)}: rename one of them")
