"""What turns with a rotation beyond the covariance: moments by class and by length, and third ones.

Rows that are whitened, each side by its own statistics, differ by a rotation, whatever the core was. Their
covariance no longer says anything, but the mean and the second moment of every *cell* of rows turn with
them: a cell is the rows of one class whose length lies in one third, say. So do third moments, taken along
a direction that itself turns with the rows, such as the mean of a cell. Rows are taken at one length: long
ones would drown the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.blocks import Moments, RotationSearch, nearest_rotation
from mole.scheme.shapes import Array

Groups = npt.NDArray[np.int64]
FEWEST_IN_A_CELL = 20


@dataclass(frozen=True, eq=False)
class Directions:
    """Whitened rows at one length, and the cell of each.

    Attributes:
        rows: (n, q), each of length sqrt(q).
        cells: (n,), the cell that each row lies in.
    """

    rows: Array
    cells: Groups

    @classmethod
    def of(cls, rows: Array, groups: Groups | None, lengths: int) -> "Directions":
        """Of whitened rows, (n, q): a cell for each group and each of so many equal shares by length.

        >>> made = Directions.of(np.array([[3.0, 4.0], [0.0, 1.0]]), None, lengths=2)
        >>> made.rows.round(2).tolist(), made.cells.tolist()
        ([[0.85, 1.13], [0.0, 1.41]], [1, 0])
        """
        size = np.linalg.norm(rows, axis=1)
        ranks = np.empty(len(rows), np.int64)
        ranks[np.argsort(size, kind="stable")] = np.arange(len(rows))
        cells = ranks * lengths // max(len(rows), 1)
        if groups is not None:
            cells = cells + lengths * groups
        scaled = rows * (np.sqrt(rows.shape[1]) / np.maximum(size, 1e-12))[:, np.newaxis].astype(rows.dtype)
        return cls(scaled, cells)

    def common_cells(self, other: "Directions") -> list[int]:
        """The cells that have enough rows on both sides."""
        most = int(max(self.cells.max(), other.cells.max())) + 1
        counts = [np.bincount(side.cells, minlength=most) for side in (self, other)]
        return [int(cell) for cell in np.flatnonzero(np.minimum(*counts) >= FEWEST_IN_A_CELL)]

    def moments(self, cells: Sequence[int], *, apart: bool = False) -> Moments:
        """Mean and second moment of each cell, over their noise; or how far each is from all together."""
        each = [_moments(self.rows[self.cells == cell]) for cell in cells]
        means, seconds = np.array([one[0] for one in each]), np.array([one[1] for one in each])
        if apart:
            weights = np.sqrt([(self.cells == cell).sum() for cell in cells])
            weights = weights / np.linalg.norm(weights)
            means -= weights[:, np.newaxis] * (weights @ means)
            seconds -= np.multiply.outer(weights, np.tensordot(weights, seconds, axes=1)).astype(np.float32)
        return Moments(means, seconds)

    def means(self, cells: Sequence[int]) -> Array:
        """The mean of each cell over its noise, (cells, q)."""
        return np.array([_mean(self.rows[self.cells == cell]) for cell in cells])

    def third_moments(self, along: Iterable[Array]) -> Array:
        """The second moment weighted by the place of each row along some directions: (how many, q, q)."""
        return np.array([self._third(direction) for direction in along])

    def within(self, basis: Array) -> "Directions":
        """The same rows as seen in a part of the space, (q, r)."""
        return Directions(self.rows @ basis.astype(self.rows.dtype), self.cells)

    def _third(self, direction: Array) -> Array:
        weights = self.rows @ direction.astype(self.rows.dtype)
        weights /= max(float(np.linalg.norm(weights)), 1e-12)
        return _without_trace((self.rows * weights[:, np.newaxis]).T @ self.rows)


def leading_space(moments: Moments, size: int) -> Array:
    """The part of the space, (q, size), in which moments say most; it turns with the rows."""
    side = moments.means.shape[1]
    if size >= side:
        return np.eye(side)
    seconds = moments.covariances.reshape(-1, side)
    strength = (seconds.T @ seconds).astype(np.float64) + 2 * moments.means.T @ moments.means
    space: Array = np.linalg.eigh(strength)[1][:, : -size - 1 : -1]
    return space


def leading_means(means: Array) -> Array:
    """The part of the space that means, (how many, q), lie in: (q, at most as many)."""
    _, sizes, space = np.linalg.svd(means, full_matrices=False)
    spanned: Array = space[sizes > 1e-6 * max(float(sizes[0]), 1e-300)].T
    return spanned


def fewer(public: Moments, morphed: Moments, most: int) -> tuple[Moments, Moments]:
    """The same with fewer matrices: those sums of the public ones that say most, and the same sums."""
    flat = public.covariances.reshape(len(public.covariances), -1)
    sums = np.linalg.eigh((flat @ flat.T).astype(np.float64))[1][:, : -most - 1 : -1].T.astype(np.float32)
    return (
        Moments(public.means, np.tensordot(sums, public.covariances, axes=1)),
        Moments(morphed.means, np.tensordot(sums, morphed.covariances, axes=1)),
    )


def with_further(moments: Moments, seconds: Array) -> Moments:
    """The same moments and further matrices."""
    return Moments(moments.means, np.concatenate([moments.covariances, seconds.astype(np.float32)]))


def within(moments: Moments, basis: Array) -> Moments:
    """Moments as seen in a part of the space, (q, r)."""
    narrow = basis.astype(np.float32)
    return Moments(moments.means @ basis, narrow.T @ moments.covariances @ narrow)


def find_rotation(
    public: Moments,
    morphed: Moments,
    rng: np.random.Generator,
    *,
    starts: int,
    steps: int,
    known: Array | None = None,
) -> tuple[Array, float]:
    """The rotation with the best agreement, and that agreement as a share of the most there could be.

    Short climbs from several starts, and from one that is known, or else the one by which the means agree
    best; only the best is followed to its end.
    """
    search = RotationSearch(public, morphed)
    by_means = nearest_rotation(public.means.T @ morphed.means)
    best = search.climb(by_means if known is None else known, max(1, steps // 6))
    count = len(public.covariances)
    for start in range(starts):
        weights: Array = rng.normal(size=(count,)) if start else np.ones(count)
        tried = search.climb(search.start(weights), max(1, steps // 6))
        best = tried if tried[1] > best[1] else best
    return climbed(search, best[0], steps)


def climbed(search: RotationSearch, rotation: Array, steps: int) -> tuple[Array, float]:
    """A rotation after so many steps up from another, and its agreement as a share."""
    found, agreement = search.climb(rotation, steps)
    return found, agreement / max(search.most, 1e-12)


def _moments(rows: Array) -> tuple[Array, Array]:
    """Mean and second moment less its trace, each over the noise that so many rows leave in it."""
    return _mean(rows), _without_trace(rows.T @ rows / np.float32(np.sqrt(len(rows))))


def _mean(rows: Array) -> Array:
    mean: Array = rows.sum(axis=0, dtype=np.float64) / np.sqrt(len(rows))
    return mean


def _without_trace(matrix: Array) -> Array:
    """A symmetric matrix less its trace, which no rotation changes."""
    diagonal = np.arange(len(matrix))
    matrix = (matrix + matrix.T) / 2
    matrix[diagonal, diagonal] -= matrix[diagonal, diagonal].mean()
    return matrix
