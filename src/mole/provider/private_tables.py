"""Files of tables that are kept with a key, beside its ledger: SQLite's, for the owner alone."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mole.errors import DeliveryError
from mole.provider.ledger import STATE
from mole.storage.atomic import reason_of

PATIENCE = 60.0  # seconds, while another delivery of millions of images is counted


@contextmanager
def opened(path: Path, tables: str) -> Iterator[sqlite3.Connection]:
    """A file to write into, made if missing; work on it is done wholly or not at all."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with _told(path), closing(sqlite3.connect(path, timeout=PATIENCE)) as connection, connection:
            connection.executescript(tables)
            yield connection
    except OSError as error:
        raise DeliveryError(
            f"{path} cannot be written: {reason_of(error)}: make it writable, or set {STATE} to another "
            "folder"
        ) from None


@contextmanager
def looked_into(path: Path, tables: str) -> Iterator[sqlite3.Connection]:
    """A file as it is, even where nothing can be written; tables that an older one lacks are empty."""
    # After a writer was killed, SQLite first takes back what that had begun: it has to write.
    mode = "rw" if path.with_name(f"{path.name}-journal").exists() else "ro"
    where = f"{path.absolute().as_uri()}?mode={mode}"
    with _told(path), closing(sqlite3.connect(where, uri=True, timeout=PATIENCE)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for table in filter(str.strip, tables.split(";")):
            name = table.split("(")[0].split()[-1]
            if table.split()[1] == "TABLE" and name not in there:
                connection.execute(table.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
        yield connection


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What SQLite cannot do, in a sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise DeliveryError(
            f"{path} cannot be used ({error}): restore it from a copy; without it nobody can tell what "
            "images have given away"
        ) from None
