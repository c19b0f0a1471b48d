"""How alike samples are, and how well a layer's feature maps show the images that they are made of."""

import numpy as np

from mole.scheme.shapes import Array, element_count, unroll

SMALLEST_PICTURE = 16  # positions: fewer resemble anything


def correlations(some: Array, others: Array) -> Array:
    """Correlation of every row of one array with every row of another: (a, n) and (b, n) to (a, b)."""

    def standardised(rows: Array) -> Array:
        centred = rows - rows.mean(axis=1, keepdims=True)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        scaled: Array = centred / np.maximum(lengths, 1e-12)
        return scaled

    found: Array = standardised(some.astype(np.float64)) @ standardised(others.astype(np.float64)).T
    return found


def best_map(maps: Array, plain: Array) -> float | None:
    """How well the best single map shows the grey image, the mean over images: a correlation.

    Maps of another size, as a stride gives them, are compared with an image of their size. None where
    maps are not pictures, such as the features of a Linear layer.

    >>> images = np.random.default_rng(0).normal(size=(3, 1, 8, 8))
    >>> best_map(images[:, :, ::2, ::2], images) is None, best_map(images[..., 0, 0], images)
    (False, None)

    Args:
        maps: (n, how many, *grid).
        plain: images, (n, channels, *grid).
    """
    if maps.ndim != plain.ndim or maps.ndim < 3 or element_count(maps.shape[2:]) < SMALLEST_PICTURE:
        return None
    shown = _resampled(plain.mean(axis=1), maps.shape[2:])
    best = [
        np.abs(correlations(unroll(many), unroll(image[np.newaxis]))).max()
        for many, image in zip(maps, shown, strict=True)
    ]
    return float(np.mean(best))


def _resampled(images: Array, grid: tuple[int, ...]) -> Array:
    """Images, (n, *grid), at another size, by picking the nearest pixels."""
    for axis, side in enumerate(grid, start=1):
        positions = (np.arange(side) + 0.5) * images.shape[axis] // side
        images = images.take(positions.astype(int), axis=axis)
    return images
