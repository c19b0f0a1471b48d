"""Scratch files: tables that are too large for memory, where any row can be read at once.

Rows leave in a random order, and a Parquet file can only be read from group to group. So a column is copied
once, unpacked, into a file of the system's temporary folder and mapped from there. The file has no name: no
other program can open it, and when this one ends, or is killed, it is gone.
"""

import mmap
import tempfile
from collections.abc import Iterable

import pyarrow as pa

from mole.errors import SourceError


def mapped(batches: Iterable[pa.RecordBatch], schema: pa.Schema, shown: str) -> pa.Table:
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
            f"{shown} can not be unpacked into {tempfile.gettempdir()}: {error.strerror or error}; "
            "set TMPDIR to a folder with more room"
        ) from None
