"""Tables in Arrow's formats: Parquet files, and data sets that Hugging Face `datasets` has saved.

Neither is loaded into memory: a column is unpacked to a temporary file when it is first needed, or the
file itself is mapped.
"""

import json
import mmap
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from mole.errors import SourceError
from mole.sources.source import Source
from mole.sources.tables import table_source
from mole.storage.atomic import reason_of
from mole.storage.locations import FileMark, Location, fingerprint

SUFFIX = ".parquet"
DICT, STATE = "dataset_dict.json", "state.json"
ROWS_AT_ONCE = 64
READ_BYTES = 1 << 20  # at a time, however large the row groups are


def open_parquet(place: Location, files: Mapping[str, FileMark]) -> Source:
    """One Parquet file, or a folder of them named after their split (train-00000-of-00002.parquet)."""
    places: dict[str, list[Location]] = {}
    for path in files:
        file = place if path == place.path else place.child(path)
        places.setdefault(_split_of(path), []).append(file)
    tables = {split: ParquetTable(parts, f"{place.label} ({split})") for split, parts in places.items()}
    return table_source("parquet", tables, place.label, fingerprint(place, files))


def open_saved_dataset(folder: Location, files: Mapping[str, FileMark]) -> Source:
    """A folder that `save_to_disk` made: one data set, as a split 'train', or several splits."""
    folders = {"train": folder.path}
    if f"{folder.path}/{DICT}" in files:
        splits = _listed(folder.child(f"{folder.path}/{DICT}"), "splits")
        folders = {split: f"{folder.path}/{split}" for split in splits}
    paths = {
        split: _data_files(folder.child(f"{where}/{STATE}"), where) for split, where in folders.items()
    }
    tables = {split: _table(folder, split, parts) for split, parts in paths.items() if parts}
    used = {path: files.get(path, FileMark(0, "")) for parts in paths.values() for path in parts}
    return table_source("saved data set", tables, folder.label, fingerprint(folder, used))


class ParquetTable:
    """The rows of some Parquet files with the same columns."""

    def __init__(self, files: Sequence[Location], label: str) -> None:
        self._files = tuple(files)
        self._label = label
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._lock = Lock()
        schemas, rows = zip(*(_schema_and_rows(file) for file in self._files), strict=True)
        self.schema: pa.Schema = schemas[0]
        self.num_rows = sum(rows)
        if not all(schema.equals(self.schema) for schema in schemas):
            raise SourceError(f"{label}: its files have different columns: give files of one data set")

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
                self._columns[name] = mapped(self._batches(name), schema, self._label)[name]
            return self._columns[name]

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            with file.open() as opened:
                try:
                    table = pq.ParquetFile(opened, buffer_size=READ_BYTES)
                    for batch in table.iter_batches(ROWS_AT_ONCE, columns=[name], use_threads=False):
                        yield batch.select([name])  # pyarrow takes 'image' for 'image.id', too
                except (pa.ArrowException, OSError):
                    raise _unreadable(file) from None


def _schema_and_rows(file: Location) -> tuple[pa.Schema, int]:
    """The columns of a Parquet file and the number of its rows, from its footer."""
    try:
        with file.open() as opened:
            table = pq.ParquetFile(opened)
            return table.schema_arrow, table.metadata.num_rows
    except (pa.ArrowException, OSError):
        raise _unreadable(file) from None


def _unreadable(file: Location) -> SourceError:
    return SourceError(f"{file.label} is not a readable Parquet file, or it is cut off: get it again")


def _split_of(path: str) -> str:
    """The split that a file name starts with.

    >>> _split_of("data/test-00000-of-00001.parquet"), _split_of("images.parquet")
    ('test', 'train')
    """
    name = path.rsplit("/", 1)[-1].lower()
    found = re.match(r"(train|test|validation|valid|val|dev)\b", name.replace("_", "-"))
    return found[1] if found else "train"


def _table(folder: Location, split: str, paths: Sequence[str]) -> pa.Table:
    try:
        return pa.concat_tables([_read(folder.child(path)) for path in paths])
    except pa.ArrowException:
        raise SourceError(
            f"{folder.label} ({split}): its files have different columns: save the data set again"
        ) from None


def _data_files(state: Location, where: str) -> list[str]:
    """The files of a data set. Others lie there too: `datasets` caches its work next to the data."""
    return [f"{where}/{name}" for name in _listed(state, "_data_files")]


def _listed(place: Location, key: str) -> list[str]:
    """Names that a JSON file lists: plain strings, or objects with a file name."""
    content = place.read()
    try:
        entries = json.loads(content)[key]
        names = [entry["filename"] if isinstance(entry, dict) else entry for entry in entries]
        if not all(isinstance(name, str) and "/" not in name for name in names):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise SourceError(f"{place.label} is damaged: save the data set again") from None
    return names


def _read(place: Location) -> pa.Table:
    """A table in Arrow's stream format: mapped, not loaded; a remote one is copied to disk first."""
    try:
        if place.is_local:
            return pa.ipc.open_stream(pa.memory_map(place.path)).read_all()
        with place.open() as opened, pa.ipc.open_stream(opened) as stream:
            return mapped(stream, stream.schema, place.label)
    except (pa.ArrowException, OSError):
        raise SourceError(
            f"{place.label} is not a readable Arrow file, or it is cut off: get it again"
        ) from None


def mapped(batches: Iterable[pa.RecordBatch], schema: pa.Schema, label: str) -> pa.Table:
    """A table of these batches, on disk and not in memory.

    >>> batch = pa.record_batch({"n": [1, 2, 3]})
    >>> mapped([batch, batch], batch.schema, "an example")["n"][4].as_py()
    2
    """
    try:
        with tempfile.TemporaryFile(prefix="mole-") as file:
            with pa.ipc.new_stream(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            file.flush()
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_stream(pa.py_buffer(content)).read_all()
    except OSError as error:
        raise SourceError(
            f"{label} cannot be unpacked into {tempfile.gettempdir()}: {reason_of(error)}; "
            "set TMPDIR to a folder with more room"
        ) from None
