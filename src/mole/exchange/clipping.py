"""What 8 bits cut off: values beyond the scales, which were fitted to a sample of the data.

Scales that reached every outlier would make all other rows coarser, so they stay as they are. What is cut
off is counted while it is written, stands in the shard and in the manifest, and is said to the provider.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.exchange.shards import LEVELS, Encoding, row_parts
from mole.scheme.shapes import Array
from mole.storage.typed_json import Fields, parse_json

CLIPPED = b"clipped"  # in a shard's metadata
NOTEWORTHY = 0.1  # of a row's length: what the ordinary tail of a distribution loses is far less


@dataclass(frozen=True)
class Clipping:
    """How much was cut off.

    >>> eight = Encoding.fit("int8", np.ones((2, 3), np.float32))
    >>> rows = np.array([[1, 1, 1], [3, 1, -2]], np.float32)
    >>> Clipping.of(rows, eight)
    Clipping(values=2, rows=1, largest_error=1.95)

    Attributes:
        values: how many values.
        rows: how many rows are off by more than a tenth of their length because of it.
        largest_error: how far the worst value is from the true one, in units of morphed data.
    """

    values: int = 0
    rows: int = 0
    largest_error: float = 0.0

    @classmethod
    def of(cls, rows: Array, encoding: Encoding) -> "Clipping":
        """What storing these rows, (b, elements), cuts off; values that are only rounded do not count."""
        if encoding.scales is None or not len(rows):
            return cls()
        reach, limit = LEVELS * encoding.scales, (LEVELS + 0.5) * encoding.scales
        found = np.concatenate([_beyond(rows, part, limit) for part in row_parts(rows)])
        if not len(found):
            return cls()
        row, column = np.divmod(found, rows.shape[1])
        size = np.abs(rows[row, column])
        excess = size - reach[column]
        lost, least = (np.bincount(row, np.square(part), minlength=len(rows)) for part in (excess, size))
        # A row is at least as long as what is cut off of it, so that few rows have to be measured.
        met = np.flatnonzero(lost > NOTEWORTHY**2 * least)
        is_noteworthy = lost[met] > NOTEWORTHY**2 * np.square(rows[met]).sum(axis=1)
        return cls(len(row), int(is_noteworthy.sum()), float(f"{excess.max():.3g}"))

    def __add__(self, other: "Clipping") -> "Clipping":
        largest = max(self.largest_error, other.largest_error)
        return Clipping(self.values + other.values, self.rows + other.rows, largest)

    def fields(self) -> dict[str, Any]:
        """As it stands in the manifest."""
        return asdict(self)

    def metadata(self) -> dict[bytes, bytes]:
        """As it stands in a shard: nothing where nothing was cut off."""
        return {CLIPPED: json.dumps(self.fields()).encode()} if self.values else {}

    @classmethod
    def of_shard(cls, metadata: Mapping[bytes, bytes]) -> "Clipping":
        """What a shard's metadata says of it."""
        text = metadata.get(CLIPPED)
        return cls() if text is None else cls.parse(parse_json(text))

    @classmethod
    def parse(cls, fields: Fields) -> "Clipping":
        """Undo `fields`."""
        values = fields.whole("values", least=1)
        return cls(values, fields.whole("rows", most=values), fields.number("largest_error"))


def _beyond(rows: Array, part: slice, limit: Array) -> npt.NDArray[np.intp]:
    """Where values of some rows are beyond a limit for each element, counted through all rows.

    Few elements have any, and only these are looked at one by one.
    """
    some = rows[part]
    columns = np.flatnonzero(np.maximum(some.max(axis=0), -some.min(axis=0)) > limit)
    row, place = np.nonzero(np.abs(some[:, columns]) > limit[columns])
    return np.asarray((part.start + row) * rows.shape[1] + columns[place], np.intp)
