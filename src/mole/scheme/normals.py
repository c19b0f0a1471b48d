"""Normal numbers from random 64-bit words, wherever the words come from."""

import numpy as np
import numpy.typing as npt

UNIT = 2.0**-53


def normals_from(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Independent standard normal numbers from pairs of words, as many as there are words.

    Box and Muller's method on pairs (v, w), of which the upper 53 bits are used:
    r = sqrt(-2 ln((v + 1) / 2^53)), t = 2 pi w / 2^53, and the pair gives r cos t, r sin t. Every key hangs
    on these very numbers.

    >>> normals_from(np.array([1 << 63, 0], dtype=np.uint64)).round(4)
    array([1.1774, 0.    ])
    """
    pairs = (words >> np.uint64(11)).astype(np.float64).reshape(-1, 2)
    numbers = np.empty_like(pairs)
    radius = np.sqrt(-2.0 * np.log((pairs[:, 0] + 1.0) * UNIT))
    angle = pairs[:, 1] * (2.0 * np.pi * UNIT)
    numbers[:, 0] = radius * np.cos(angle)
    numbers[:, 1] = radius * np.sin(angle)
    return numbers.reshape(-1)
