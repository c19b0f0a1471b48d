"""How the columns of a Parquet file are packed, and where they lie, from its footer, read byte by byte.

Arrow tells too, but aborts the process where a footer names a packing that does not exist, or counts levels
that a column does not have. The footer is a struct in Thrift's compact protocol: a byte for each field with
its type and how far its number is from the last, then its value; numbers are of variable length, seven bits
to a byte.
"""

import os
from typing import IO, Any, NamedTuple

from mole.limits import MAX_FOOTER_BYTES

MAGIC, TAIL = b"PAR1", 8
DEEPEST = 16  # Parquet's own structs are nested six deep
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
# The numbers of fields in Parquet's definition.
ROW_GROUPS, COLUMNS, COLUMN_FACTS = 4, 1, 3
CODEC, COUNT, STORED_BYTES, FIRST_PAGE, DICTIONARY_PAGE = 4, 5, 7, 9, 11
WIDTHS = {I16: 16, I32: 32, I64: 64}  # bits
LARGEST_FIELD = (1 << 15) - 1  # Thrift takes a larger number for another field's
PACKINGS = ("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4 raw")


class FooterError(ValueError):
    """Bytes that are no footer."""


class Chunk(NamedTuple):
    """A column of a row group: how it is packed, where its pages lie, how many values it says it has.

    Attributes:
        packing: 'none', 'snappy', ..., or 'unknown'.
        start: where Arrow begins to read.
        length: bytes of its pages.
        values: in all of them.
    """

    packing: str
    start: int
    length: int
    values: int


def chunks(file: IO[bytes]) -> list[list[Chunk]]:
    """The columns of each row group, in their order: Arrow goes by that, whatever names stand beside them.

    For a footer that Arrow wrote. One that was made to harm can be understood in two ways.

    Raises:
        FooterError: if it has no footer that can be understood.
    """
    footer = Thrift(footer_bytes(file)).struct()
    return [[_chunk(column) for column in _list(group, COLUMNS)] for group in _list(footer, ROW_GROUPS)]


def _chunk(column: Any) -> Chunk:
    facts = column.get(COLUMN_FACTS) if isinstance(column, dict) else None
    if not isinstance(facts, dict):
        raise FooterError("its footer is damaged")
    codec, values, length, first, dictionary = (
        facts.get(field, 0) for field in (CODEC, COUNT, STORED_BYTES, FIRST_PAGE, DICTIONARY_PAGE)
    )
    if not all(isinstance(number, int) for number in (codec, values, length, first, dictionary)):
        raise FooterError("its footer is damaged")
    start = dictionary if 0 < dictionary < first else first
    return Chunk(PACKINGS[codec] if 0 <= codec < len(PACKINGS) else "unknown", start, length, values)


def _list(struct: Any, field: int) -> list[Any]:
    value = struct.get(field, []) if isinstance(struct, dict) else None
    if not isinstance(value, list):
        raise FooterError("its footer is damaged")
    return value


def footer_bytes(file: IO[bytes]) -> bytes:
    """The footer as it stands in a file.

    Raises:
        FooterError: if there is none, or one that is longer than any of ours.
    """
    size = file.seek(0, os.SEEK_END)
    if size < len(MAGIC) + TAIL:
        raise FooterError("it is too short")
    file.seek(size - TAIL)
    tail = file.read(TAIL)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or not 0 < length <= min(size - TAIL, MAX_FOOTER_BYTES):
        raise FooterError("its footer is damaged, or too long")
    file.seek(size - TAIL - length)
    return file.read(length)


class Thrift:
    """Values one after the other; structs become dictionaries by the numbers of their fields.

    Attributes:
        at: how many bytes have been read.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """A struct up to its end."""
        fields: dict[int, Any] = {}
        number = 0
        while kind_and_step := self._take(1)[0]:
            step, kind = kind_and_step >> 4, kind_and_step & 15
            number = number + step if step else self._signed(WIDTHS[I16])
            if number in fields or not 0 < number <= LARGEST_FIELD:
                raise FooterError("its footer has a field twice")
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise FooterError("its footer is nested too deeply")
        if kind in (I16, I32, I64):
            return self._signed(WIDTHS[kind])
        if kind == BINARY:
            return self._take(self._unsigned())
        if kind in (LIST, SET):
            head = self._take(1)[0]
            count = self._unsigned() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(self._possible(count))]
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (TRUE, FALSE, BYTE):
            return self._take(1)[0]
        if kind == DOUBLE:
            return self._take(8)
        raise FooterError("its footer has a value of an unknown kind")

    def _take(self, count: int) -> bytes:
        part = self._content[self.at : self.at + self._possible(count)]
        self.at += count
        return part

    def _possible(self, count: int) -> int:
        if count > len(self._content) - self.at:
            raise FooterError("its footer is cut off")
        return count

    def _unsigned(self) -> int:
        value, shift = 0, 0
        while shift < 64:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        if value >> 64 or shift >= 64:  # Thrift would cut it off, and go on with what is left
            raise FooterError("its footer has a number that is too long")
        return value

    def _signed(self, bits: int) -> int:
        value = self._unsigned()
        if value >> bits:
            raise FooterError("its footer has a number that is too long")
        return value >> 1 ^ -(value & 1)
