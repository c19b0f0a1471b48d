"""How many values the pages of a Parquet column hold, from the header of each page, before any is unpacked.

A page of a few bytes can say that one value is repeated a billion times, and Arrow makes them all. It stops
at the number of values that the footer gives, but never in the middle of a page: so pages are added up.
"""

from typing import IO, Any

from mole.storage.parquet_footer import Chunk, FooterError, Thrift

LONGEST_HEADER = 1 << 14  # ours have some twenty bytes
# Kinds of pages, and the numbers of fields in Parquet's definition.
DATA, DICTIONARY, DATA_2 = 0, 2, 3
KIND, STORED_BYTES, VALUES = 1, 3, 1
HEADS = {DATA: 5, DICTIONARY: 7, DATA_2: 8}
ENCODINGS = {DATA: 2, DICTIONARY: 2, DATA_2: 4}
# Values as they are, or as entries of a dictionary. Others build texts from those before, and grow.
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
ALLOWED = {PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY}


def check_pages(file: IO[bytes], chunk: Chunk, most: int) -> None:
    """Refuse a chunk of more than so many values, whether its footer says so or its pages do.

    Raises:
        FooterError: for such a chunk, and one whose pages are not what its footer says.
    """
    if not 0 <= chunk.values <= most or chunk.start < 0:
        raise FooterError(f"a column has {chunk.values} values, and {most} at most have room in its rows")
    at, end, seen = chunk.start, chunk.start + chunk.length, 0
    while seen < chunk.values:
        if at >= end:
            raise FooterError("its pages are cut off")
        file.seek(at)
        reader = Thrift(file.read(LONGEST_HEADER))
        header = reader.struct()
        kind, stored = _whole(header, KIND), _whole(header, STORED_BYTES)
        if kind not in HEADS:
            raise FooterError("it has a page of an unknown kind")
        head = header.get(HEADS[kind])
        values = _whole(head, VALUES)
        if values > most or _whole(head, ENCODINGS[kind]) not in ALLOWED:
            raise FooterError("it has a page that can unpack to anything")
        seen += 0 if kind == DICTIONARY else values
        at += reader.at + stored
    if seen != chunk.values or at > end:
        raise FooterError("its pages hold other values than its footer says")


def _whole(fields: Any, number: int) -> int:
    value = fields.get(number) if isinstance(fields, dict) else None
    if not isinstance(value, int) or value < 0:
        raise FooterError("it has a page that is damaged")
    return value
