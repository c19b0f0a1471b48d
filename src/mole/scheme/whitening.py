"""Whitening: what a core has to know about the data so that morphed data shows no covariance."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mole.errors import ShapeError
from mole.scheme.shapes import Array

# Directions with less variance than this share of the largest are treated as if they had it: it
# bounds the condition number by 1000 and keeps the noise of near-constant pixels small.
SPECTRUM_FLOOR = 1e-6
BLOCKS_PER_SIDE = 2
BLOCKS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False, repr=False)
class Whitening:
    """The symmetric matrix S^(-1/2) of a covariance S, (q, q).

    It is kept in 32 bits: rounding changes the covariance of morphed data by 1e-7, and every machine makes
    the same core from the rounded matrix. It describes the provider's data, so it is as secret as the seed.
    """

    matrix: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        matrix = self.matrix
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype != np.float32:
            raise ShapeError(
                f"a whitening is a square float32 matrix, not {matrix.dtype} of {matrix.shape}"
            )
        if not np.isfinite(matrix).all():
            raise ShapeError("the whitening has a NaN or an infinity")

    @classmethod
    def estimate(cls, blocks: Array) -> "Whitening":
        """Estimate it from blocks of plain data, (n, q), as the core will meet them.

        It takes at least 2 q blocks: with fewer, directions that the sample never shows would be blown up
        in all other data, and give more away than without whitening.

        >>> blocks = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
        >>> Whitening.estimate(blocks).matrix
        array([[0.70710677, 0.        ],
               [0.        , 1.4142135 ]], dtype=float32)
        """
        count, side = blocks.shape
        if count < BLOCKS_PER_SIDE * side:
            raise ShapeError(
                f"a whitened core of side {side} learns from at least {BLOCKS_PER_SIDE * side} blocks, and "
                f"the sample has {count}: give more images, or use an orthogonal core"
            )
        try:
            variances, directions = np.linalg.eigh(_covariance(blocks))
        except np.linalg.LinAlgError:
            raise ShapeError("the sample's covariance cannot be computed: are its values sane?") from None
        if not variances[-1] > 0:
            raise ShapeError("the sample has no variance: give different images to whiten with")
        kept = np.maximum(variances, SPECTRUM_FLOOR * variances[-1])
        matrix = (directions / np.sqrt(kept)) @ directions.T
        return cls(((matrix + matrix.T) / 2).astype(np.float32))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the matrix's bytes (row by row, little-endian): binds it to a key."""
        return hashlib.sha256(np.ascontiguousarray(self.matrix, dtype="<f4").data).hexdigest()

    def __repr__(self) -> str:
        return f"Whitening({len(self.matrix)}x{len(self.matrix)}, secret)"


def _covariance(blocks: Array) -> npt.NDArray[np.float64]:
    """Covariance about the mean, accumulated in 64 bits without a 64-bit copy of the blocks."""
    mean = blocks.mean(axis=0, dtype=np.float64)
    total = np.zeros((blocks.shape[1], blocks.shape[1]))
    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
        centred = blocks[start : start + BLOCKS_AT_ONCE].astype(np.float64) - mean
        total += centred.T @ centred
    return total / len(blocks)
