"""Tables in Arrow's formats: Parquet files, and data sets that Hugging Face `datasets` has saved.

Neither is loaded into memory: a column is unpacked to a temporary file when it is first needed, or the
file itself is mapped.
"""

import mmap
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import IO, Any, NoReturn

import pyarrow as pa

from mole.errors import SourceError
from mole.foreign_text import shown
from mole.limits import MAX_JSON_BYTES, most_unpacked
from mole.quantities import size_text
from mole.sources.reading import Reading
from mole.sources.source import Source
from mole.sources.tables import table_source
from mole.storage.arrow_reading import (
    UNREADABLE,
    Parquet,
    SizeError,
    check_unpacked_stream,
    map_file,
    stream_batches,
)
from mole.storage.atomic import reason_of
from mole.storage.locations import FileMark, Location, fingerprint
from mole.storage.typed_json import FormatError, is_text, parse_json

SUFFIX = ".parquet"
DICT, STATE = "dataset_dict.json", "state.json"


def open_parquet(place: Location, files: Mapping[str, FileMark], reading: Reading) -> Source:
    """One Parquet file, or a folder of them named after their split (train-00000-of-00002.parquet)."""
    places: dict[str, list[Location]] = {}
    for path in files:
        file = place if path == place.path else place.child(path)
        places.setdefault(_split_of(path), []).append(file)
    tables = {split: ParquetTable(parts, f"{place.label} ({split})") for split, parts in places.items()}
    print_of_files = fingerprint(place, files)
    return table_source(
        "parquet", tables, place.label, print_of_files, reading.label_column, labels=reading.labels
    )


def open_saved_dataset(folder: Location, files: Mapping[str, FileMark], reading: Reading) -> Source:
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
    print_of_files = fingerprint(folder, used)
    return table_source(
        "saved data set", tables, folder.label, print_of_files, reading.label_column, labels=reading.labels
    )


class ParquetTable:
    """The rows of some Parquet files with the same columns."""

    def __init__(self, files: Sequence[Location], label: str) -> None:
        self._files = tuple(files)
        self._label = label
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._lock = Lock()
        schemas, rows, sizes = zip(*(_footer(file) for file in self._files), strict=True)
        self.schema: pa.Schema = schemas[0]
        self.num_rows, self._most = sum(rows), most_unpacked(sum(sizes))
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
                column = mapped(self._batches(name), schema, self._label)[name]
                if len(column) != self.num_rows:
                    raise SourceError(f"{self._label} has fewer rows than it says: get it again")
                self._columns[name] = column
            return self._columns[name]

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        unpacked = 0
        for file in self._files:
            with file.open() as opened:
                try:
                    for batch in Parquet(opened).batches(name):
                        unpacked += batch.nbytes
                        if unpacked > self._most:
                            raise SizeError(f"unpacks to more than {size_text(self._most)}")
                        yield batch
                except UNREADABLE as error:
                    _refuse(file, error)


def _footer(file: Location) -> tuple[pa.Schema, int, int]:
    """The columns of a Parquet file, the number of its rows, and its bytes."""
    try:
        with file.open() as opened:
            table = Parquet(opened)
            table.check_rows(least_bytes=1)
            return table.schema, table.rows, table.size
    except UNREADABLE as error:
        _refuse(file, error)


def _refuse(file: Location, error: Exception, kind: str = "Parquet") -> NoReturn:
    """Say of a file what is wrong with it."""
    if isinstance(error, SizeError):
        raise SourceError(f"{file.label} {error}: save it again, unpacked") from None
    raise SourceError(
        f"{file.label} is not a readable {kind} file, or it is cut off: get it again"
    ) from None


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
            f"{folder.label} ({shown(split)}): its files have different columns: save the data set again"
        ) from None


def _data_files(state: Location, where: str) -> list[str]:
    """The files of a data set. Others lie there too: `datasets` caches its work next to the data."""
    return [f"{where}/{name}" for name in _listed(state, "_data_files")]


def _listed(place: Location, key: str) -> list[str]:
    """Names that a JSON file lists: plain strings, or objects with a file name."""
    try:
        entries: list[Any] = parse_json(place.read_at_most(MAX_JSON_BYTES)).value(key)
        found: list[Any] = [
            entry.get("filename") if isinstance(entry, dict) else entry for entry in entries
        ]
        if not all(is_text(name) and "/" not in name for name in found):
            raise FormatError("its names are not those of files")
    except (FormatError, TypeError):
        raise SourceError(f"{place.label} is damaged: save the data set again") from None
    return list(map(str, found))


def _read(place: Location) -> pa.Table:
    """A table in Arrow's stream format: mapped, not loaded; a remote one is copied to disk first.

    Every batch is validated before anything looks at its values. Images themselves are not read for that.
    """
    try:
        content = map_file(place.path) if place.is_local else _copied(place)
        check_unpacked_stream(content)
        content.seek(0)
        schema, batches = stream_batches(content)
        return pa.Table.from_batches(list(batches), schema)
    except UNREADABLE as error:
        _refuse(place, error, "Arrow")


def _copied(place: Location) -> Any:
    """A remote file as memory, which lies in a nameless file on this machine."""
    with place.open() as opened, _scratch(place.label) as file:
        shutil.copyfileobj(opened, file, 1 << 20)
        return _as_memory(file)


@contextmanager
def _scratch(label: str) -> Iterator[IO[bytes]]:
    """A nameless file; an error that says where it would lie if it cannot be written."""
    try:
        with tempfile.TemporaryFile(prefix="mole-") as file:
            yield file
    except OSError as error:
        raise SourceError(
            f"{label} cannot be unpacked into {tempfile.gettempdir()}: {reason_of(error)}; "
            "set TMPDIR to a folder with more room"
        ) from None


def _as_memory(file: IO[bytes]) -> Any:
    file.flush()
    return pa.BufferReader(pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def mapped(batches: Iterable[pa.RecordBatch], schema: pa.Schema, label: str) -> pa.Table:
    """A table of these batches, on disk and not in memory.

    >>> batch = pa.record_batch({"n": [1, 2, 3]})
    >>> mapped([batch, batch], batch.schema, "an example")["n"][4].as_py()
    2
    """
    with _scratch(label) as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        _, written = stream_batches(_as_memory(file))
        return pa.Table.from_batches(list(written), schema)
