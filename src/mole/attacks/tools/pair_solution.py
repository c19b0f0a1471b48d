"""Known pairs of plain and morphed blocks, solved for what undoes the morphing."""

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from mole.scheme.shapes import Array

ROUNDING = 1e-7  # of the morphed data's size: what 32 bits cannot hold of it


NOTHING = 1e-13  # of the largest eigenvalue: a direction that no known block shows
MANY = 2  # rows for each of a block's elements, above which a matrix of side q is quicker


class PairSolution:
    """Unmorphs blocks by known pairs: t T^T (T T^T)^-1 D, the smallest solution of T X = D.

    The factor of the first n rows is a corner of the factor of all, so a curve over n costs one factor.
    Where there are many more rows than a block has elements, as with tiles, T^T T is the smaller matrix.
    """

    def __init__(self, plain: Array, morphed: Array) -> None:
        """From blocks that go together, (rows, q) each, in 64 bits."""
        self._plain, self._morphed = plain, morphed
        self._factor: Array | None = None
        if len(plain) > MANY * plain.shape[1]:
            return
        gram = morphed @ morphed.T
        size = float(gram.trace()) / len(gram)
        # Rounding is noise in T: as many times as there are rows, for a square that sums over them.
        gram[np.diag_indices(len(gram))] += max(len(gram) * ROUNDING**2 * size, 1e-14 * size, 1e-300)
        self._factor = np.asarray(cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)[0])

    def __call__(self, blocks: Array, rows: int | None = None) -> Array:
        """Plain blocks, by the first `rows` rows of equations."""
        rows = len(self._plain) if rows is None else rows
        if self._factor is None:
            return np.asarray(blocks @ self._inverse(rows))
        factor = self._factor[:rows, :rows]
        half = solve_triangular(factor, self._morphed[:rows] @ blocks.T, lower=True, check_finite=False)
        solved = solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
        return np.asarray(solved.T @ self._plain[:rows])

    def _inverse(self, rows: int) -> Array:
        """The smallest solution X itself, (q, q), by the eigenvectors of T^T T."""
        plain, morphed = self._plain[:rows], self._morphed[:rows]
        squares, directions = np.linalg.eigh(morphed.T @ morphed)
        noise = ROUNDING**2 * float(np.square(morphed).sum())
        seen = squares > max(NOTHING * squares[-1], noise, 1e-300)
        directions = directions[:, seen]
        return np.asarray(directions / squares[seen] @ (directions.T @ (morphed.T @ plain)))
