"""How the columns of a Parquet file are packed, from its footer, read here byte by byte.

Arrow tells too, but aborts the process where a footer names a packing that does not exist. The footer is a
struct in Thrift's compact protocol: a byte for each field with its type and how far its number is from the
last, then its value; numbers are of variable length, seven bits to a byte.
"""

import os
from typing import IO, Any

from mole.limits import MAX_FOOTER_BYTES

MAGIC, TAIL = b"PAR1", 8
DEEPEST = 16  # Parquet's own structs are nested six deep
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
# The numbers of fields in Parquet's definition.
ROW_GROUPS, COLUMNS, COLUMN_FACTS, CODEC = 4, 1, 3, 4
PACKINGS = ("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4 raw")


class FooterError(ValueError):
    """Bytes that are no footer."""


def packings(file: IO[bytes]) -> set[str]:
    """How its columns are packed: 'none', 'snappy', ..., or 'unknown'.

    All of them: which is which Arrow takes from their order, whatever name stands beside the packing.
    """
    footer = Thrift(_footer_bytes(file)).struct()
    found: set[str] = set()
    for group in _list(footer, ROW_GROUPS):
        for column in _list(group, COLUMNS):
            facts = column.get(COLUMN_FACTS) if isinstance(column, dict) else None
            codec = facts.get(CODEC) if isinstance(facts, dict) else None
            is_known = isinstance(codec, int) and 0 <= codec < len(PACKINGS)
            found.add(PACKINGS[codec] if is_known and codec is not None else "unknown")
    return found


def _list(struct: Any, field: int) -> list[Any]:
    value = struct.get(field, []) if isinstance(struct, dict) else None
    if not isinstance(value, list):
        raise FooterError("its footer is damaged")
    return value


def _footer_bytes(file: IO[bytes]) -> bytes:
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
            number = number + step if step else self._signed()
            if number in fields:
                raise FooterError("its footer has a field twice")
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise FooterError("its footer is nested too deeply")
        if kind in (I16, I32, I64):
            return self._signed()
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
        while shift < 70:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise FooterError("its footer has a number that is too long")

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
