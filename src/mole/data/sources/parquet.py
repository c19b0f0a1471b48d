"""Parquet files, one or a folder of them."""

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from mole.data.places import Place, fingerprint
from mole.data.source import Source
from mole.data.sources.tables import table_source
from mole.errors import SourceError

SUFFIX = ".parquet"


def open_parquet(place: Place, sizes: Mapping[str, int]) -> Source:
    """One Parquet file, or a folder of them named after their split (train-00000-of-00002.parquet)."""
    tables: dict[str, list[pa.Table]] = {}
    for path in sizes:
        file = place if path == place.path else place.child(path)
        tables.setdefault(_split_of(path), []).append(_read(file))
    return table_source("parquet", tables, place.shown, fingerprint(dict(sizes)))


def _read(file: Place) -> pa.Table:
    try:
        with file.open() as opened:
            return pq.read_table(opened)
    except (pa.ArrowException, OSError):
        raise SourceError(
            f"{file.shown} is not a readable Parquet file, or it is cut off: get it again"
        ) from None


def _split_of(path: str) -> str:
    """The split that a file name starts with.

    >>> _split_of("data/test-00000-of-00001.parquet"), _split_of("images.parquet")
    ('test', 'train')
    """
    name = path.rsplit("/", 1)[-1].lower()
    found = re.match(r"(train|test|validation|valid|val)\b", name.replace("_", "-"))
    return found[1] if found else "train"
