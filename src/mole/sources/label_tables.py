"""Tables of labels: CSV, TSV, JSON lines or Parquet, with a row for each file.

One column says which file a row is about, one its label, and the others may be handed over.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mole.errors import SourceError
from mole.foreign_text import listed
from mole.limits import MAX_TABLE_BYTES
from mole.sources.table_files import csv_columns, json_columns, parquet_columns, text_of
from mole.storage.locations import Location

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
FILE_NAME = "file_name"  # what Hugging Face calls the column
# What others call it; the first that is there counts.
KEYS = (
    FILE_NAME, "filename", "file", "filepath", "file_path", "path", "image", "image_path", "image_name",
    "image_id", "sopinstanceuid", "sop_instance_uid", "name", "id",
)  # fmt: skip
LABEL = "label"


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
    content = place.read_at_most(MAX_TABLE_BYTES)
    if ending == ".parquet":
        columns, ragged = parquet_columns(place), list[int]()
    else:
        text = text_of(content, place)
        columns, ragged = (json_columns if ending == ".jsonl" else csv_columns)(text, place)
    wanted = KEYS if key is None else (key,)
    named = next((found for name in wanted if (found := _spelt(columns, name)) is not None), None)
    if named is None:
        raise NoNamesError(
            f"{place.label} has no column that says which file a row is about "
            f"(it has {listed(columns)}): call it {FILE_NAME}"
        )
    names = ["" if value is None else str(value).strip() for value in columns.pop(named)]
    return LabelTable(place.label, names, columns, hashlib.sha256(content).hexdigest(), ragged)


def _spelt(columns: Mapping[str, Any], name: str) -> str | None:
    if name in columns:
        return name
    return next((column for column in columns if column.lower() == name.lower()), None)
