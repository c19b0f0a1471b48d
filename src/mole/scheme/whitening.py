"""Whitening: what a core has to know about the data so that morphed data shows no covariance.

It is learned from a sample, and a small one says little about directions in which it hardly varies. Ledoit
and Wolf (2004) tell from the sample itself how little: their *shrinkage*, a share of the mean variance.
Where they add it to every direction, here it is the least that a direction is taken to have. Adding would
leave the variances of morphed data a little unequal, in the order of those of the images; and the order is
all that an attacker needs. Even rounding to 32 bits does that to the very images that were learned from: it
moves the strongest direction most. So images count by secret weights, which move all directions more, and
at random.
"""

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
BLOCKS_PER_SIDE = 2  # from here on the sample's own variances are taken as they are
BLOCKS_AT_ONCE = 4096
WEIGHTS_SPREAD = 0.3  # of the logarithm of an image's weight


@dataclass(frozen=True, eq=False, repr=False)
class Whitening:
    """The symmetric matrix S^(-1/2) of a covariance S, (q, q).

    It is kept in 32 bits, so that every machine makes the same core from the rounded matrix. It describes
    the provider's data, so it is as secret as the seed.

    Attributes:
        matrix: S^(-1/2).
        blocks: how many blocks of plain data it was learned from; None where nobody wrote it down.
        shrinkage: the share of the mean variance that every direction was taken to have at least; 0.0 for a
            sample that was large enough.
    """

    matrix: npt.NDArray[np.float32]
    blocks: int | None = None
    shrinkage: float | None = None

    def __post_init__(self) -> None:
        matrix = self.matrix
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype != np.float32:
            raise ShapeError(
                f"a whitening is a square float32 matrix, not {matrix.dtype} of {matrix.shape}"
            )
        if not np.isfinite(matrix).all():
            raise ShapeError("the whitening has a NaN or an infinity")

    @classmethod
    def estimate(cls, blocks: Array, normal: Array | None = None) -> "Whitening":
        """Estimate it from blocks of plain data, (n, q), as the core will meet them.

        With fewer than 2 q blocks, directions that the sample never shows would be blown up in all other
        data, and give more away than without whitening: the shrinkage keeps them small. `normal` are secret
        normal numbers, (n,), for the weights of blocks; without them all count alike.

        >>> blocks = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
        >>> Whitening.estimate(blocks).matrix
        array([[0.70710677, 0.        ],
               [0.        , 1.4142135 ]], dtype=float32)
        """
        count, side = blocks.shape
        covariance, shrinkage = _covariance(blocks), 0.0
        if count < BLOCKS_PER_SIDE * side:
            shrinkage = ledoit_wolf(blocks, covariance)
        if normal is not None:
            covariance = _covariance(blocks, np.exp(WEIGHTS_SPREAD * normal))
        try:
            variances, directions = np.linalg.eigh(covariance)
        except np.linalg.LinAlgError:
            raise ShapeError("the sample's covariance cannot be computed: are its values sane?") from None
        if not variances[-1] > 0:
            raise ShapeError("the sample has no variance: give different images to whiten with")
        least = max(SPECTRUM_FLOOR * variances[-1], shrinkage * variances.mean())
        kept = np.maximum(variances, least)
        matrix = (directions / np.sqrt(kept)) @ directions.T
        return cls(((matrix + matrix.T) / 2).astype(np.float32), count, shrinkage)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the matrix's bytes (row by row, little-endian): binds it to a key."""
        return hashlib.sha256(np.ascontiguousarray(self.matrix, dtype="<f4").data).hexdigest()

    def __repr__(self) -> str:
        return f"Whitening({len(self.matrix)}x{len(self.matrix)}, secret)"


def ledoit_wolf(blocks: Array, covariance: npt.NDArray[np.float64]) -> float:
    """How far to draw a sample's covariance towards equal variances, from 0 to 1 (Ledoit and Wolf, 2004).

    The expected error of the covariance over its distance from equal variances, both as the sample tells.

    >>> blocks = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    >>> round(ledoit_wolf(blocks, _covariance(blocks)), 3)
    0.944
    """
    count, side = blocks.shape
    mean = blocks.mean(axis=0, dtype=np.float64)
    fourth = 0.0
    for start in range(0, count, BLOCKS_AT_ONCE):
        centred = blocks[start : start + BLOCKS_AT_ONCE].astype(np.float64) - mean
        fourth += float((np.square(centred).sum(axis=1) ** 2).sum())
    squares = float(np.square(covariance).sum())
    distance = squares - float(np.trace(covariance)) ** 2 / side
    error = (fourth / count - squares) / count
    return min(1.0, max(0.0, error / distance)) if distance > 0 else 1.0


def _covariance(blocks: Array, weights: Array | None = None) -> npt.NDArray[np.float64]:
    """Covariance about the mean, accumulated in 64 bits without a 64-bit copy of the blocks."""
    mean = blocks.mean(axis=0, dtype=np.float64)
    total = np.zeros((blocks.shape[1], blocks.shape[1]))
    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
        centred = blocks[start : start + BLOCKS_AT_ONCE].astype(np.float64) - mean
        if weights is not None:
            centred *= np.sqrt(weights[start : start + BLOCKS_AT_ONCE, np.newaxis])
        total += centred.T @ centred
    return total / (len(blocks) if weights is None else float(weights.sum()))
