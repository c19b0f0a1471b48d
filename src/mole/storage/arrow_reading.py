"""The one place that opens Parquet files and Arrow streams, so that the same is true of every reader.

Everything is read on the thread that asks. One of Arrow's own threads may still hold a Python file when
Python ends, and that aborts it.

Everything is validated, down to the last offset, before anything looks at it. Arrow believes what it reads:
one wrong offset in a file, and the process dies the moment a value is asked for.
"""

import io
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from mole.limits import LEAST_ROW_BYTES
from mole.quantities import size_text
from mole.storage.parquet_footer import Chunk, chunks
from mole.storage.parquet_pages import check_pages

UNREADABLE = (
    pa.ArrowException, OSError, ValueError, KeyError, IndexError, TypeError, OverflowError,
    NotImplementedError, RecursionError,
)  # fmt: skip
"""What Arrow raises for a file that is damaged, or made to harm."""
READ_BYTES = 1 << 20  # at a time, however large the row groups are
ROWS_AT_ONCE = 64
DICTIONARY, BATCH, COMPRESSION = 2, 3, 3  # kinds of messages, and a field of batches, by their numbers
BOUNDED = {"none", "snappy"}  # Snappy packs no more than 22 bytes into one


class SizeError(ValueError):
    """A file that holds, or says that it holds, more than it can; the message goes on from its name."""


class Parquet:
    """An opened Parquet file, whose footer does not promise more rows than its bytes can hold.

    Attributes:
        schema: its columns.
        rows: how many rows it has.
        size: bytes of the file.
    """

    def __init__(self, file: IO[bytes], *, dictionaries: Sequence[str] = ()) -> None:
        """Read the footer; text columns in `dictionaries` keep each text once, however often it occurs."""
        self.size = file.seek(0, os.SEEK_END)
        self._bytes = file
        self._file = pq.ParquetFile(
            file, read_dictionary=list(dictionaries), buffer_size=READ_BYTES, pre_buffer=False
        )
        self.schema: pa.Schema = self._file.schema_arrow
        check_names(self.schema)
        metadata = self._file.metadata
        self._groups = [int(metadata.row_group(index).num_rows) for index in range(metadata.num_row_groups)]
        self.rows = int(metadata.num_rows)
        if self.rows != sum(self._groups) or min(self._groups, default=0) < 0:
            raise SizeError("has a footer that contradicts itself")

    def check_rows(self, least_bytes: int = LEAST_ROW_BYTES) -> None:
        """Refuse more rows than fit into the file at so many bytes each."""
        if self.rows * least_bytes > self.size:
            raise SizeError(f"says that it has {self.rows} rows, in {size_text(self.size)}")

    def read(self, most: Mapping[str, int]) -> pa.Table:
        """Columns by their full paths, validated; one that is not there is left out.

        Each is given with the number of values that a row of it has at most, and none is read before it is
        known that there are no more.
        """
        paths = [self._file.schema.column(index).path for index in range(len(self._file.schema.names))]
        wanted = [path for path in most if path in paths]
        if any(paths.count(path) > 1 for path in wanted):
            raise SizeError("has two columns of one name")
        indices = [paths.index(path) for path in wanted]
        self._check_values({index: most[path] for path, index in zip(wanted, indices, strict=True)})
        # By their numbers: asked for 'image', pyarrow reads 'image.id', too.
        table = self._file.reader.read_all(column_indices=indices, use_threads=False)
        table = table.select([path.split(".")[0] for path in wanted])
        table.validate(full=True)
        if len(table) != self.rows:
            raise SizeError("has fewer rows than it says")
        return table

    @cached_property
    def _chunks(self) -> list[list[Chunk]]:
        """The columns of each row group as Arrow understood them: from the footer as it writes it again.

        Arrow cannot be asked about a column, which may end the process; and to read the file's own footer
        here would be to trust that Arrow understands every byte of it as we do.
        """
        footer = io.BytesIO()
        self._file.metadata.write_metadata_file(footer)
        return chunks(footer)

    def check_packing(self) -> None:
        """Refuse a column that is packed so that a few bytes can unpack to gigabytes."""
        if not {chunk.packing for group in self._chunks for chunk in group} <= BOUNDED:
            raise SizeError("is packed in a way that can unpack to anything")

    def _check_values(self, most: Mapping[int, int]) -> None:
        self.check_packing()
        for rows, group in zip(self._groups, self._chunks, strict=True):
            for column, values in most.items():
                check_pages(self._bytes, group[column], rows * values)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """One column, some rows at a time, validated."""
        for batch in self._file.iter_batches(ROWS_AT_ONCE, columns=[name], use_threads=False):
            column = batch.select([name])  # pyarrow takes 'image' for 'image.id', too
            column.validate(full=True)
            yield column


def stream_batches(source: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of an Arrow stream, and its batches, validated."""
    stream = pa.ipc.open_stream(source, options=pa.ipc.IpcReadOptions(use_threads=False))
    check_names(stream.schema)
    return stream.schema, _validated(stream)


def check_names(fields: Iterable[pa.Field]) -> None:
    """Refuse names that are no text, in columns and inside of them: Arrow decodes one when it is asked for.

    Raises:
        ValueError: as Arrow does, which is one of `UNREADABLE`.
    """
    for field in fields:
        _ = field.name
        check_names(field.type.field(index) for index in range(field.type.num_fields))


def map_file(path: str) -> Any:
    """A local file as memory that is read when it is looked at."""
    return pa.memory_map(path)


def _validated(stream: Any) -> Iterator[pa.RecordBatch]:
    for batch in stream:
        batch.validate(full=True)
        yield batch


def check_unpacked_stream(source: Any) -> None:
    """Refuse an Arrow stream whose batches are packed: nothing bounds what they would unpack to.

    Arrow does not tell, so the beginning of each message is looked at here.
    """
    for message in pa.ipc.MessageReader.open_stream(source):
        if _is_packed(message.metadata.to_pybytes()):
            raise SizeError("is packed in a way that can unpack to anything")


def _is_packed(message: bytes) -> bool:
    """Whether a message is a batch, or a dictionary, with a field that says how it is packed.

    It is a table of FlatBuffers: before each table stands how far back its list of fields begins, and the
    list has how far from the table each field lies, or 0 for one that is not there.
    """

    def field(table: int, number: int) -> int:
        fields = table - struct.unpack_from("<i", message, table)[0]
        (length,) = struct.unpack_from("<H", message, fields)
        place = 4 + 2 * number
        (step,) = struct.unpack_from("<H", message, fields + place) if place < length else (0,)
        return table + step if step else 0

    def table_at(place: int) -> int:
        return place + int(struct.unpack_from("<I", message, place)[0])

    try:
        top = table_at(0)
        kind, header = message[field(top, 1)], field(top, 2)
        if kind not in (DICTIONARY, BATCH) or not header:
            return False
        batch = table_at(header) if kind == BATCH else table_at(field(table_at(header), 1))
        return field(batch, COMPRESSION) != 0
    except (struct.error, IndexError):
        raise SizeError("has a message that cannot be understood") from None
