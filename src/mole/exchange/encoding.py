"""How morphed rows are stored: in 32 bits, 16 bits, or 8 bits with a scale for each element.

With eight bits a delivery is as large as the 8-bit images it was made from. The scales come from a random
sample of the data, with room for what other rows may hold; the few values beyond are clipped.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError
from mole.scheme.morphing import narrow
from mole.scheme.shapes import Array

Dtype = Literal["float32", "float16", "int8"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
LEVELS = 127
ROWS_AT_ONCE = 64  # few enough to stay in the processor's cache from step to step
MARGIN = 1.05  # over the largest value of the sample
DEVIATIONS = 4.0  # of the sample: the least that the scales reach, because small samples miss the extremes


def check_dtype(dtype: str) -> Dtype:
    """The same type, unless it is one in which rows are not stored."""
    for known in DTYPES:
        if dtype == known:
            return known
    raise ParameterError(f"data cannot be stored as '{dtype}'", advice={"dtype": DTYPES})


@dataclass(frozen=True, eq=False)
class Encoding:
    """A number type for stored rows, and for 8 bits the scales, (elements,) of float32.

    >>> rows = np.array([[1.0, -20.0], [0.5, 10.0]], dtype=np.float32)
    >>> eight = Encoding.fit("int8", rows)
    >>> eight.encode(rows)
    array([[121, -42],
           [ 60,  21]], dtype=int8)
    """

    dtype: Dtype
    scales: npt.NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        if (self.dtype == "int8") != (self.scales is not None):
            raise ParameterError("8-bit data has scales, and other data has none")

    @classmethod
    def fit(cls, dtype: Dtype, sample: Array) -> "Encoding":
        """An encoding for rows like these, (b, elements)."""
        if dtype != "int8":
            return cls(dtype)
        reach = np.maximum(MARGIN * np.abs(sample).max(axis=0), DEVIATIONS * sample.std(axis=0))
        smallest_useful = 1e-12 + 1e-6 * reach.max()
        return cls(dtype, (np.maximum(reach, smallest_useful) / LEVELS).astype(np.float32))

    def encode(self, rows: Array) -> npt.NDArray[Any]:
        """Rows as they are stored."""
        if self.scales is None:
            return narrow(rows, np.dtype(self.dtype))
        stored = np.empty(rows.shape, np.int8)
        per_step = 1 / self.scales
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            scaled = rows[part] * per_step
            np.rint(scaled, out=scaled)
            np.clip(scaled, -LEVELS, LEVELS, out=scaled)
            stored[part] = scaled
        return stored

    def decode(self, stored: npt.NDArray[Any]) -> Array:
        """Stored rows as float32 again."""
        values = stored.astype(np.float32)
        return values if self.scales is None else values * self.scales
