"""Ways to find the secret channel order: by the bias, by the row space, by statistics of features."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from mole.attacks.attack import NotApplicableError
from mole.attacks.row_space import delivered_space, find_window, published_space
from mole.attacks.views import DeveloperView
from mole.convolve import features_of
from mole.geometry import Array

Order = npt.NDArray[np.intp]
SAMPLES = 1024
QUANTILES = np.linspace(0.02, 0.98, 25)


class FoundOrder(NamedTuple):
    """A guess at the channel order, how it was found, and how clear-cut it is.

    `margin` compares the distance to the second-best channel with that to the chosen one: large is sure.
    """

    order: Order
    method: str
    margin: float


def find_order(view: DeveloperView, rng: np.random.Generator) -> FoundOrder:
    """The channel order by the surest way that this layer allows."""
    for method in (by_bias, by_row_space, by_statistics):
        found = method(view, rng)
        if found is not None:
            return found
    raise NotApplicableError(
        "the layer has no bias and no more channels than the pixels they see, so its row space shows no "
        "order; and without public images there are no statistics to compare"
    )


def by_bias(view: DeveloperView, rng: np.random.Generator) -> FoundOrder | None:
    """The bias is delivered in the shuffled order, and the developer knows it: comparing is enough."""
    own, delivered = view.layer.bias, view.augmented.bias
    if own is None or delivered is None or len(np.unique(own.astype(delivered.dtype))) < len(own):
        return None
    return _match(own[:, np.newaxis], delivered[:, np.newaxis], "its bias")


def by_row_space(view: DeveloperView, rng: np.random.Generator) -> FoundOrder | None:
    """A channel's block of the projector onto the row space does not depend on the key."""
    if not view.geometry.kernel:
        return None
    window = find_window(view.geometry, view.input_shape, view.augmented.output_shape)
    if window is None:
        return None
    channels = view.layer.channels
    own = _fingerprints(published_space(view.layer, window), channels)
    delivered = _fingerprints(delivered_space(view.augmented, window, rng), channels)
    return _match(own, delivered, "the row space of the augmented layer")


def by_statistics(view: DeveloperView, rng: np.random.Generator) -> FoundOrder | None:
    """Features of public images have the same distribution, channel by channel, as delivered ones."""
    if view.public is None:
        return None
    own = features_of(view.layer, view.public[:SAMPLES].astype(np.float32))
    delivered = view.features(SAMPLES)
    return _match(_distribution(own), _distribution(delivered), "statistics of its features")


def _fingerprints(basis: Array, channels: int) -> Array:
    """Each channel's own block of the projector, (channels, window positions squared)."""
    by_channel = basis.reshape(len(basis), channels, -1)
    blocks: Array = np.einsum("rcx,rcy->cxy", by_channel, by_channel)
    return blocks.reshape(channels, -1)


def _distribution(features: Array) -> Array:
    """Quantiles of each channel over samples and positions, and their position averages."""
    channels = features.shape[1]
    values = np.moveaxis(features, 1, 0).reshape(channels, -1)
    return np.quantile(values, QUANTILES, axis=1).T


def _match(own: Array, delivered: Array, method: str) -> FoundOrder:
    """The assignment of channels that fits best over all of them."""
    distances = np.linalg.norm(delivered[:, np.newaxis].astype(np.float64) - own[np.newaxis], axis=2)
    rows, order = linear_sum_assignment(distances)
    chosen = distances[rows, order]
    others = distances.copy()
    others[rows, order] = np.inf
    margin = float(np.median(others.min(axis=1) / np.maximum(chosen, 1e-12))) if len(own) > 1 else np.inf
    return FoundOrder(order.astype(np.intp), method, margin)
