"""Small tables in files: CSV, TSV, JSON lines or Parquet, as columns of cells by name."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mole.errors import SourceError
from mole.foreign_text import listed, shown
from mole.limits import MAX_TABLE_ROWS
from mole.sources.arrow_files import ParquetTable
from mole.storage.arrow_reading import UNREADABLE
from mole.storage.locations import Location
from mole.storage.typed_json import FormatError, parse_json

DELIMITERS = ",;\t"
MAX_COLUMNS = 1024
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


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


def text_of(content: bytes, place: Location) -> str:
    """The text of a file, which has to be UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{place.label} is not text in UTF-8: save it as 'CSV UTF-8'") from None


def csv_columns(text: str, place: Location) -> tuple[dict[str, list[Any]], list[int]]:
    """The columns of a CSV or TSV file, and the lines with more or fewer cells than the first."""
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


def json_columns(text: str, place: Location) -> tuple[dict[str, list[Any]], list[int]]:
    """The columns of a file with a JSON object in each line; none of these is ragged."""
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


def parquet_columns(place: Location) -> dict[str, list[Any]]:
    """The columns of a Parquet file."""
    table = ParquetTable([place], place.label)
    if table.num_rows > MAX_TABLE_ROWS:
        raise SourceError(f"{place.label} has more than {MAX_TABLE_ROWS} rows: split it")
    _check_header(table.column_names, place)
    try:
        return {name: table[name].to_pylist() for name in table.column_names}
    except UNREADABLE:
        raise SourceError(f"{place.label} holds what cannot be a table of labels: get it again") from None


def _check_header(header: Sequence[str], place: Location) -> None:
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if not any(header):
        raise SourceError(f"{place.label} is empty: give it a first line that names the columns")
    if len(header) > MAX_COLUMNS:
        raise SourceError(f"{place.label} has more than {MAX_COLUMNS} columns: leave some out")
    if twice:
        raise SourceError(f"{place.label} has two columns called {listed(twice)}: rename one of them")
