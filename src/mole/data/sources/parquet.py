"""Parquet files, one or a folder of them. Columns are unpacked when they are needed, and not in memory."""

import re
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from mole.data.places import FileMark, Place, fingerprint
from mole.data.scratch import mapped
from mole.data.source import Source
from mole.data.sources.tables import table_source
from mole.errors import SourceError

SUFFIX = ".parquet"
ROWS_AT_ONCE = 64
READ_BYTES = 1 << 20  # at a time, however large the row groups are


def open_parquet(place: Place, files: Mapping[str, FileMark]) -> Source:
    """One Parquet file, or a folder of them named after their split (train-00000-of-00002.parquet)."""
    places: dict[str, list[Place]] = {}
    for path in files:
        file = place if path == place.path else place.child(path)
        places.setdefault(_split_of(path), []).append(file)
    tables = {split: ParquetTable(parts, f"{place.shown} ({split})") for split, parts in places.items()}
    return table_source("parquet", tables, place.shown, fingerprint(place, files))


class ParquetTable:
    """The rows of some Parquet files with the same columns."""

    def __init__(self, files: Sequence[Place], shown: str) -> None:
        self._files = tuple(files)
        self._shown = shown
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._lock = Lock()
        schemas, rows = zip(*(_ends(file) for file in self._files), strict=True)
        self.schema: pa.Schema = schemas[0]
        self.num_rows = sum(rows)
        if not all(schema.equals(self.schema) for schema in schemas):
            raise SourceError(f"{shown}: its files differ in their columns: give files of one data set")

    @property
    def column_names(self) -> list[str]:
        """Names of all columns."""
        names: list[str] = self.schema.names
        return names

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        """A column, unpacked at its first use."""
        with self._lock:
            if name not in self._columns:
                schema = pa.schema([self.schema.field(name)])
                self._columns[name] = mapped(self._batches(name), schema, self._shown)[name]
            return self._columns[name]

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            with file.open() as opened:
                try:
                    table = pq.ParquetFile(opened, buffer_size=READ_BYTES)
                    for batch in table.iter_batches(ROWS_AT_ONCE, columns=[name]):
                        yield batch.select([name])  # pyarrow takes 'image' for 'image.id', too
                except (pa.ArrowException, OSError):
                    raise _unreadable(file) from None


def _ends(file: Place) -> tuple[pa.Schema, int]:
    """The columns of a file and the number of its rows, from its end."""
    try:
        with file.open() as opened:
            table = pq.ParquetFile(opened)
            return table.schema_arrow, table.metadata.num_rows
    except (pa.ArrowException, OSError):
        raise _unreadable(file) from None


def _unreadable(file: Place) -> SourceError:
    return SourceError(f"{file.shown} is not a readable Parquet file, or it is cut off: get it again")


def _split_of(path: str) -> str:
    """The split that a file name starts with.

    >>> _split_of("data/test-00000-of-00001.parquet"), _split_of("images.parquet")
    ('test', 'train')
    """
    name = path.rsplit("/", 1)[-1].lower()
    found = re.match(r"(train|test|validation|valid|val|dev)\b", name.replace("_", "-"))
    return found[1] if found else "train"
