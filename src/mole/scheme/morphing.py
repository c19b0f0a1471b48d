"""Morph and unmorph: the block-diagonal product with M, without ever building M (paper, equation 2).

M repeats the core kappa times on its diagonal, so multiplying a sample by M is the same as cutting it into
kappa blocks and multiplying each by the core: one matrix product for a whole batch.
"""

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from mole.errors import ShapeError
from mole.scheme.cores import Core
from mole.scheme.layouts import Layout
from mole.scheme.shapes import Array, FloatType, check_finite, check_floats, rows_of


@dataclass(frozen=True, eq=False, repr=False)
class Morphing:
    """A core at work on samples cut into blocks. It undoes morphing, so it is as secret as the key."""

    layout: Layout
    core: Core
    _casts: dict[tuple[str, FloatType], Array] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.core.size != self.layout.block:
            raise ShapeError(
                f"the core has side {self.core.size}, and blocks of this input {self.layout.block}"
            )

    def morph(self, batch: Array) -> Array:
        """Morphed data from plain data, in the batch's own shape and dtype."""
        return self._multiply(batch, "matrix")

    def unmorph(self, batch: Array) -> Array:
        """Plain data from morphed data, in the batch's own shape and dtype."""
        return self._multiply(batch, "inverse")

    def inverse_rows(self, start: int, stop: int, *, dtype: FloatType) -> Array:
        """Rows `start` to `stop` of M^-1: (stop - start, elements)."""
        return self.layout.inverse_rows(self._cast("inverse", dtype), start, stop)

    def _multiply(self, batch: Array, which: str) -> Array:
        compute = compute_dtype(check_floats(batch).dtype)
        rows = rows_of(batch, self.layout.input_shape)
        check_finite(rows)  # one bad element would spread over its block
        blocks = self.layout.to_blocks(rows).astype(compute, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # `narrow` says it better
            product = blocks @ self._cast(which, compute)
        return self.layout.to_rows(narrow(product, batch.dtype)).reshape(batch.shape)

    def _cast(self, which: str, dtype: FloatType) -> Array:
        """The core or its inverse in the precision of the data, made once."""
        if (which, dtype) not in self._casts:
            self._casts[which, dtype] = getattr(self.core, which).astype(dtype, copy=False)
        return self._casts[which, dtype]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Morphing is secret and never pickled, because a pickle is not encrypted")

    def __repr__(self) -> str:
        return f"Morphing(input_shape={self.layout.input_shape}, kappa={self.layout.kappa}, secret)"


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
