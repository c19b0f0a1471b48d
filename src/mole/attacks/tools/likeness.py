"""Does it look like a picture? Neighbouring pixels of a picture are alike, those of noise are not."""

import numpy as np

from mole.scheme.shapes import Array


def picture_likeness(maps: Array, *, per_image: bool = True) -> tuple[Array, Array]:
    """Correlation of neighbouring pixels, and energy, of each channel: (n, channels, *grid) to (channels,).

    Both are about what varies inside each image, or else about all images together.

    >>> ramp, noise = np.mgrid[0:8, 0:8][0] * 1.0, np.array([[1.0, -1.0] * 4, [-1.0, 1.0] * 4] * 4)
    >>> correlation, energy = picture_likeness(np.stack([ramp, noise])[np.newaxis])
    >>> correlation.round(2).tolist(), energy.round(2).tolist()
    ([0.95, -1.0], [5.25, 1.0])
    """
    values = maps.astype(np.float64)
    inner = tuple(range(2, values.ndim))
    everything = (0, *inner)
    values = values - values.mean(axis=inner if per_image else everything, keepdims=True)
    energy = np.square(values).mean(axis=everything)
    steps = [
        np.square(np.diff(values, axis=axis)).mean(axis=everything)
        for axis in inner
        if values.shape[axis] > 1
    ]
    # Half the mean square of steps between neighbours is energy times (1 - correlation).
    return 1 - np.mean(steps, axis=0) / (2 * np.maximum(energy, 1e-300)), energy


def neighbour_correlation(samples: Array) -> float:
    """How alike neighbouring pixels are over all channels, the strong ones counting most.

    Samples, (n, channels, *grid), or (n, elements) without channels.

    >>> ramp = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> round(neighbour_correlation(ramp), 2), round(neighbour_correlation(ramp[..., ::-1]), 2)
    (0.8, 0.8)
    """
    maps = samples if samples.ndim > 2 else samples[:, np.newaxis]
    correlation, energy = picture_likeness(maps, per_image=False)
    return float((correlation * energy).sum() / max(float(energy.sum()), 1e-300))
