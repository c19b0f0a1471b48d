"""Linear least squares over images and over all noise that could be drawn on their features.

Noise adds its variance to that of the features, so the average over all drawings has a closed form: nothing
is left to the luck of one, and no linear map does better on average. That limited noise has a little less
variance along the features than in other directions is not counted.
"""

import numpy as np
import numpy.typing as npt

from mole.scheme.shapes import Array


class LinearOnNoise:
    """What is least wrong on average: a linear map from noisy features to whatever is to be told.

    >>> linear = LinearOnNoise.fit(np.array([[1.0], [-1.0]]), np.array([1.0, 0.0]), sigma=1.0)
    >>> linear(np.array([[1.0], [0.0]])).tolist()
    [[0.75], [0.5]]

    Attributes:
        middle: mean of the features, (d,).
        target: mean of what is told, (t,).
        weights: (d, t).
    """

    def __init__(
        self,
        middle: npt.NDArray[np.float64],
        target: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64],
    ) -> None:
        self.middle, self.target, self.weights = middle, target, weights

    @classmethod
    def fit(cls, features: Array, targets: npt.NDArray[np.floating], sigma: float) -> "LinearOnNoise":
        """Learn from features without noise, (n, d), and what is to be told of each, (n,) or (n, t).

        Where there are fewer images than numbers in a row, the same is worked out in their number.
        """
        wanted = targets.reshape(len(targets), -1)
        middle, target = (some.mean(axis=0, dtype=np.float64) for some in (features, wanted))
        centred, count = features.astype(np.float64) - middle, len(features)
        if count < features.shape[1]:
            alike = centred @ centred.T / count + sigma**2 * np.eye(count)
            weights = centred.T @ np.linalg.solve(alike, wanted - target) / count
        else:
            moments = centred.T @ centred / count + sigma**2 * np.eye(features.shape[1])
            together = centred.astype(wanted.dtype).T @ wanted  # centred features need no centred targets
            weights = np.linalg.solve(moments, together / count)
        return cls(middle, target, weights)

    def __call__(self, rows: Array) -> Array:
        """What it tells of noisy rows, (n, d) to (n, t)."""
        told: Array = (rows - self.middle) @ self.weights + self.target
        return told
