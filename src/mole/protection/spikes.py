"""Variances of clean features, from those of noisy ones: the spiked model of random matrices.

The covariance of n noisy rows has variances (eigenvalues) that are smeared out, however even the noise is:
with gamma = d / n, from (1 - sqrt(gamma))^2 to (1 + sqrt(gamma))^2 of it. What lies inside is
noise for all one can tell. What stands out is too large by a known amount, and its direction is wrong
by a known angle (Donoho, Gavish and Johnstone, 2018).
"""

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LEAST = 1e-6  # of the variance of noisy features: no direction of clean ones has less


def without_noise(variances: Floats, sigma: float, freedom: float) -> Floats:
    """Variances of clean features along the directions of noisy ones.

    >>> without_noise(np.array([1.0, 1.0, 1.0, 9.0]), sigma=0.5, freedom=1e6).round(2)
    array([0.75, 0.75, 0.75, 8.75])

    Args:
        variances: those of noisy features along the eigenvectors of their covariance, (d,), rising.
        sigma: standard deviation of the noise in each number.
        freedom: how many rows they are taken from.

    Returns:
        As many. What does not stand out gets its mean, and none is less than the standard error of a
        variance, which noise alone could pretend.
    """
    gamma, count = len(variances) / freedom, len(variances)
    mean = float(variances.mean())
    least = max(mean * math.sqrt(2 / freedom), LEAST * mean, 1e-30)
    clean = np.full(count, least)
    while count:
        base = float(variances[:count].mean())
        largest = float(variances[count - 1])
        if largest <= base * (1 + math.sqrt(gamma)) ** 2 or count == 1:
            clean[:count] = max(base - sigma**2, least)
            break
        clean[count - 1] = max(base * _spike(largest / base, gamma) - sigma**2, least)
        count -= 1
    return clean


def _spike(ratio: float, gamma: float) -> float:
    """A variance that stands out, in units of the others: without what the smearing adds to it.

    >>> round(_spike(9.0, gamma=1e-9), 6), round(_spike(9.0, gamma=0.5), 3)
    (9.0, 7.901)
    """
    middle = ratio + 1 - gamma
    true = (middle + math.sqrt(max(middle**2 - 4 * ratio, 0.0))) / 2
    if true <= 1:
        return 1.0
    cosine = (1 - gamma / (true - 1) ** 2) / (1 + gamma / (true - 1))  # squared, of the angle
    return 1 + (true - 1) * max(cosine, 0.0)
