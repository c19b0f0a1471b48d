"""How the blocks of a sample go together: whitened blocks, their moments, and the rotation left unknown.

Every block of a sample is multiplied by the same core. So the mean of block a and the covariance of blocks
a and b, which differ from place to place in an image, all carry the same unknown matrix. Once the blocks of
public images and those of morphed data are whitened, each by their own statistics, all that is left unknown
is a rotation, whatever the core.
"""

from dataclasses import dataclass

import numpy as np

from mole.scheme.shapes import Array

FLOOR = 1e-6  # of the largest variance: keeps directions that hardly vary from being blown up
AT_ONCE = 64  # covariances turned at once


@dataclass(frozen=True, eq=False)
class Whitened:
    """Blocks whose covariance, taken over all places together, is the identity.

    Attributes:
        blocks: (n, kappa, q).
        whiten, colour: (q, q): what they were multiplied by, and what undoes it.
    """

    blocks: Array
    whiten: Array
    colour: Array

    @classmethod
    def of(cls, blocks: Array) -> "Whitened":
        """Whiten blocks, (n, kappa, q), by their own covariance.

        >>> rng = np.random.default_rng(0)
        >>> made = Whitened.of(rng.normal(size=(500, 2, 3)) @ rng.normal(size=(3, 3)))
        >>> np.cov(made.blocks.reshape(-1, 3).T).round(2).tolist() == np.eye(3).tolist()
        True
        """
        rows = blocks.reshape(-1, blocks.shape[-1])
        centred = rows - rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        variances, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(rows))
        scales = np.sqrt(np.maximum(variances, FLOOR * max(variances[-1], np.finfo(np.float64).tiny)))
        whiten, colour = (directions / scales) @ directions.T, (directions * scales) @ directions.T
        return cls(blocks @ whiten.astype(blocks.dtype), whiten, colour)


@dataclass(frozen=True, eq=False)
class Moments:
    """Means, (places, q), and covariances, (places squared, q, q) less their traces, of whitened blocks."""

    means: Array
    covariances: Array

    @classmethod
    def of(cls, blocks: Array) -> "Moments":
        """Of blocks (n, places, q)."""
        count, places, side = blocks.shape
        means = blocks.mean(axis=0, dtype=np.float64)
        rows = (blocks - means.astype(np.float32)).astype(np.float32).reshape(count, -1)
        table = (rows.T @ rows / np.float32(count)).reshape(places, side, places, side)
        pairs = np.ascontiguousarray(table.transpose(0, 2, 1, 3)).reshape(-1, side, side)
        diagonal = np.arange(side)
        # No rotation changes a trace, so it says nothing; without it the climb below takes longer steps.
        pairs[:, diagonal, diagonal] -= pairs[:, diagonal, diagonal].mean(axis=1, keepdims=True)
        return cls(means, pairs)


class RotationSearch:
    """Looks for the rotation R that brings R^T A R closest to B, over all moments: A public, B morphed."""

    def __init__(self, public: Moments, morphed: Moments) -> None:
        self.public, self.morphed = public, morphed
        side = public.means.shape[1]
        self._wide = np.ascontiguousarray(public.covariances.transpose(1, 0, 2)).reshape(side, -1)
        self._turned = np.ascontiguousarray(morphed.covariances.transpose(0, 2, 1))
        self._means = public.means.T @ morphed.means

    def slope(self, rotation: Array) -> tuple[Array, float]:
        """Half the derivative of the agreement, and the agreement itself."""
        side = len(rotation)
        turned = (rotation.astype(np.float32) @ self._turned).reshape(-1, side)
        squares = (self._wide @ turned).astype(np.float64)
        agreement = float((rotation * (squares + 2 * self._means)).sum())
        return squares + self._means, agreement

    @property
    def most(self) -> float:
        """An upper limit: no rotation agrees better than this."""
        sizes = [
            float(np.square(moments.covariances).sum() + 2 * np.square(moments.means).sum())
            for moments in (self.public, self.morphed)
        ]
        return float(np.sqrt(sizes[0] * sizes[1]))

    def start(self, weights: Array) -> Array:
        """A first guess: the eigenvectors of one weighted sum of covariances, matched by rank.

        Their signs are those with which the other covariances agree best: an eigenvector problem again.
        """
        ours, theirs = (self._directions(moments, weights) for moments in (self.public, self.morphed))
        agreement = np.zeros((len(ours), len(ours)))
        for at in range(0, len(self.public.covariances), AT_ONCE):
            part = slice(at, at + AT_ONCE)
            public, morphed = self.public.covariances[part], self.morphed.covariances[part]
            agreement += (_turned(public, ours) * _turned(morphed, theirs)).sum(axis=0)
        means = self.public.means @ ours, self.morphed.means @ theirs
        agreement += (means[0].T @ means[0]) * (means[1].T @ means[1])
        np.fill_diagonal(agreement, 0)
        signs = np.where(np.linalg.eigh(agreement + agreement.T)[1][:, -1] < 0, -1.0, 1.0)
        if np.sum(means[0] * signs * means[1]) < 0:
            signs = -signs
        guess: Array = (ours * signs) @ theirs.T
        return guess

    def climb(self, rotation: Array, steps: int) -> tuple[Array, float]:
        """Climb towards better agreement: each rotation is the one nearest to the slope at the last.

        Subtracting some of the last rotation makes steps longer; adding some makes them shorter, for when
        a step went too far.
        """
        slope, agreement = self.slope(rotation)
        unit = np.linalg.norm(slope) / np.sqrt(len(slope))
        brake = 0.0
        for _ in range(steps):
            tried = nearest_rotation(slope + brake * unit * rotation)
            next_slope, reached = self.slope(tried)
            if reached < agreement:
                brake = brake / 2 if brake < -0.02 else max(2 * brake, 0.1)
                continue
            gain, agreement = reached - agreement, reached
            rotation, slope = tried, next_slope
            if gain < 1e-6 * abs(agreement):
                break
            brake = max(0.7 * brake - (0.05 if brake < 0.3 else 0), -0.45)
        return rotation, agreement

    @staticmethod
    def _directions(moments: Moments, weights: Array) -> Array:
        weighted = np.tensordot(weights.astype(np.float32), moments.covariances, axes=1).astype(np.float64)
        directions: Array = np.linalg.eigh(weighted + weighted.T)[1]
        return directions


def nearest_rotation(matrix: Array) -> Array:
    """The rotation or reflection nearest to a matrix.

    >>> nearest_rotation(np.array([[3.0, 0.0], [0.0, -0.1]])).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    left, _, right = np.linalg.svd(matrix)
    rotation: Array = left @ right
    return rotation


def _turned(matrices: Array, directions: Array) -> Array:
    narrow = directions.astype(np.float32)
    turned: Array = narrow.T @ matrices @ narrow
    return turned
