"""How often, at most, anybody picks the image of a row out of candidates that are equally likely.

A converse of coding theory: for any threshold t, P[right] <= P[i > t] + 2^t / N, where i is the information
density of the row against any one reference. The worst image counts, and the best threshold.
"""

import math

import numpy as np
import numpy.typing as npt

from mole.errors import MissingExtraError, ParameterError
from mole.protection.limited_noise import Along, below

NORMS = 65  # lengths of features, from 0 to the longest, of which the worst counts
THRESHOLDS = 400  # from which the best is chosen
MOST_FEATURES = 1024  # for which chi-squared variables are worked out: of more it takes long, or fails

Floats = npt.NDArray[np.float64]


def picked_from_limited(rows: Along, candidates: int, gaussian: float) -> float:
    """Of rows with limited noise, the longest of which are given: against rows of no features.

    No row tells more than its limit, so there is always the threshold beyond which none lies. Nor is any
    density larger than (p + raised) / A, where p is that of Gaussian noise: with few features, or few
    candidates, less follows from that.

    >>> round(picked_from_limited(Along(rho=1.22, limit=2.757), 1000, gaussian=0.04), 4)
    0.016

    Args:
        rows: of the longest features.
        candidates: how many there are.
        gaussian: what would be picked if the same noise had no limit.
    """
    lengths = [Along(rho, rows.limit) for rho in np.linspace(0, rows.rho, NORMS)[1:]]
    most = max(one.most for one in lengths)

    def exceeding(bits: Floats) -> Floats:
        return np.array([max(one.exceeding(math.log(2) * at) for one in lengths) for at in bits])

    top = math.log2(_checked(candidates))
    bound = exceeding(at := np.linspace(top - 40, top, THRESHOLDS)) + np.exp2(at - top)
    unlimited = (gaussian + rows.raised) / rows.mass
    return float(min(1.0, bound.min(), math.exp(min(0.0, most - math.log(candidates))), unlimited))


def picked_from_gaussian(features: int, clip: float, sigma: float, candidates: int) -> float:
    """Of rows with Gaussian noise: against N(0, (sigma^2 + C^2 / d) I).

    For an image of length r, i is a number minus a multiple of a non-central chi-squared variable, so its
    distribution is known exactly. Of very many features, the reference is the noise alone.
    """
    top = math.log2(_checked(candidates))
    thresholds = np.linspace(top - 40, top, THRESHOLDS)
    bound = _exceeding(features, clip, sigma, thresholds) + np.exp2(thresholds - top)
    return float(min(1.0, bound.min()))


def _checked(candidates: int) -> int:
    if candidates < 1:
        raise ParameterError(f"there is at least one candidate, not {candidates}")
    return candidates


def _exceeding(features: int, clip: float, sigma: float, thresholds: Floats) -> Floats:
    """P[i > t] for each threshold, (n,), of the worst length; or what is above it."""
    least = _exceeding_alone(clip / sigma, thresholds)
    if features > MOST_FEATURES:
        return least
    try:
        from scipy.stats import chi2, ncx2  # noqa: PLC0415  (an extra)
    except ImportError:
        raise MissingExtraError("the bound on identification needs SciPy", "front") from None
    variance = sigma**2 + clip**2 / features
    slope = clip**2 / features / variance  # 1 - sigma^2 / variance
    worst = np.zeros_like(thresholds)
    for length in np.linspace(0, clip, NORMS):
        pull = length * sigma / variance / slope
        start = features * math.log(variance / sigma**2)
        start += length**2 / variance + slope * pull**2
        limit = (start - 2 * math.log(2) * thresholds) / slope
        share = ncx2.cdf(limit, features, pull**2) if pull else chi2.cdf(limit, features)
        worst = np.maximum(worst, share)
    return np.fmin(worst, least)  # what SciPy cannot work out is not a number


def _exceeding_alone(ratio: float, thresholds: Floats) -> Floats:
    """The same against another reference, N(0, sigma^2 I): the noise alone.

    For an image of length r, i is then normal, with a mean of r^2 / (2 sigma^2) and a variance of twice
    that: of the longest image more often above a positive threshold than of any other. It is what the
    other comes to with more and more features.
    """
    nats = math.log(2) * thresholds
    return np.array([below(ratio / 2 - one / ratio) if one > 0 else 1.0 for one in nats])
