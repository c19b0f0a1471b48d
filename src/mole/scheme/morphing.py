"""Morph and unmorph: the block-diagonal product with M, without ever building M (paper, equation 2).

M repeats the core kappa times on its diagonal, so multiplying a row vector by M is the same as
cutting it into kappa blocks and multiplying each by the core: one matrix product for a whole batch.
"""

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from mole.errors import ShapeError
from mole.scheme.cores import Core
from mole.scheme.shapes import (
    Array,
    FloatType,
    Shape,
    block_size,
    check_finite,
    check_floats,
    element_count,
    rows_of,
)

LAYOUTS = ("rows",)


@dataclass(frozen=True, eq=False, repr=False)
class Morphing:
    """A core at work on samples of one shape. It undoes morphing, so it is as secret as the key."""

    input_shape: Shape
    kappa: int
    core: Core
    layout: str = "rows"
    _casts: dict[tuple[str, FloatType], Array] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        size = block_size(self.input_shape, self.kappa)
        if self.core.size != size:
            raise ShapeError(f"the core has side {self.core.size}, and this input needs {size}")

    def morph(self, batch: Array) -> Array:
        """Morphed data from plain data, in the batch's own shape and dtype."""
        return self._multiply(batch, "matrix")

    def unmorph(self, batch: Array) -> Array:
        """Plain data from morphed data, in the batch's own shape and dtype."""
        return self._multiply(batch, "inverse")

    def inverse_rows(self, start: int, stop: int, *, dtype: FloatType) -> Array:
        """Rows `start` to `stop` of M^-1: (stop - start, elements)."""
        inverse = self._cast("inverse", dtype)
        if self.kappa == 1:
            return inverse[start:stop]
        rows = np.zeros((stop - start, element_count(self.input_shape)), dtype)
        for index in range(start, stop):
            block, row = divmod(index, self.core.size)
            rows[index - start, block * self.core.size : (block + 1) * self.core.size] = inverse[row]
        return rows

    def _multiply(self, batch: Array, which: str) -> Array:
        compute = compute_dtype(check_floats(batch).dtype)
        rows = check_finite(rows_of(batch, self.input_shape))  # one bad element would spread over its block
        blocks = rows.reshape(-1, self.core.size).astype(compute, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # `narrow` says it better
            product = blocks @ self._cast(which, compute)
        return narrow(product, batch.dtype).reshape(batch.shape)

    def _cast(self, which: str, dtype: FloatType) -> Array:
        """The core or its inverse in the precision of the data, made once."""
        if (which, dtype) not in self._casts:
            self._casts[which, dtype] = getattr(self.core, which).astype(dtype, copy=False)
        return self._casts[which, dtype]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Morphing is secret and never pickled, because pickles lie in clear")

    def __repr__(self) -> str:
        return f"Morphing(input_shape={self.input_shape}, kappa={self.kappa}, secret)"


def narrow(values: Array, dtype: FloatType) -> Array:
    """Values in a dtype that may be smaller, or an error where they do not fit in it."""
    with np.errstate(over="ignore"):
        narrowed = values.astype(dtype, copy=False)
    if not np.isfinite(narrowed).all():
        raise ShapeError(f"values do not fit in {dtype}: use a larger float type, or smaller values")
    return narrowed


def compute_dtype(dtype: FloatType) -> FloatType:
    """Products run in 32 or 64 bits, whatever the data is stored in: half precision is slower."""
    return np.dtype(np.float64) if dtype.itemsize >= 8 else np.dtype(np.float32)
