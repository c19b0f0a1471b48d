"""Ways to find the secret channel order: by the bias, by the row space, by statistics of features."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from mole.attacks.tools.row_space import (
    delivered_space,
    delivered_stack,
    find_stack,
    find_window,
    published_space,
)
from mole.attacks.tools.views import DeveloperView, NotApplicableError
from mole.scheme.convolution import features_of
from mole.scheme.shapes import Array

Order = npt.NDArray[np.intp]
SAMPLES = 1024
FEWEST_SAMPLES = 16
QUANTILES = np.linspace(0.02, 0.98, 25)
ROUNDS = 10
SAME = 1e-6  # of the longest kernel: kernels no further apart than this may be swapped
CHANGES_NOTHING = 1e-8  # of the largest square of a channel's rows of the projector


class FoundOrder(NamedTuple):
    """A guess at the channel order, how it was found, and how clear-cut it is.

    `margin` compares the distance to the second-best channel with that to the chosen one, at the channel
    where they are closest: large is sure, 1 is a guess.
    """

    order: Order
    method: str
    margin: float


class Spaces(NamedTuple):
    """Bases of one row space, (rank, channels, positions): by the own layer, and by the delivered one."""

    own: Array
    delivered: Array


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
    return _matched(cdist(delivered[:, np.newaxis], own[:, np.newaxis]), "its bias")


def by_row_space(view: DeveloperView, rng: np.random.Generator) -> FoundOrder | None:
    """A channel's rows of the projector onto the row space do not depend on the key."""
    spaces = find_spaces(view, rng)
    if spaces is None or not _shows_order(spaces, view.layer.ungrouped_weight):
        return None
    distances: Array = cdist(_fingerprints(spaces.delivered), _fingerprints(spaces.own))
    order = linear_sum_assignment(distances)[1]
    for _ in range(ROUNDS):  # the right order turns one basis into the other, and shows every channel
        before, distances = order, _distances_when(spaces, order)
        order = linear_sum_assignment(distances)[1]
        if (order == before).all():
            break
    return _matched(distances, "the row space of the augmented layer")


def by_statistics(view: DeveloperView, rng: np.random.Generator) -> FoundOrder | None:
    """Features of public images have the same distribution, channel by channel, as delivered ones."""
    if view.public is None or min(len(view.public), len(view.morphed)) < FEWEST_SAMPLES:
        return None
    own = features_of(view.layer, view.public[:SAMPLES].astype(np.float32))
    delivered = view.features(SAMPLES)
    order = linear_sum_assignment(cdist(_distribution(delivered), _distribution(own)))[1]
    together, own_together = _covariance(delivered), _covariance(own)
    for _ in range(ROUNDS):
        before, distances = order, cdist(together, own_together[:, order])
        order = linear_sum_assignment(distances)[1]
        if (order == before).all():
            break
    return _matched(distances, "statistics of its features")


def find_spaces(view: DeveloperView, rng: np.random.Generator) -> Spaces | None:
    """Row spaces in which the order shows; None if there are none."""
    window = find_window(view.geometry, view.input_shape, view.augmented.output_shape)
    if window is not None:
        own = published_space(view.layer, window)
        return Spaces(own, delivered_space(view.augmented, window, rng, len(own)))
    stack = find_stack(view.layer, view.cut)
    return None if stack is None else Spaces(stack.space, delivered_stack(view.augmented, stack, rng))


def _shows_order(spaces: Spaces, weight: Array) -> bool:
    """Whether swapping any two channels with different kernels would change the row space."""
    kernels = weight.reshape(len(weight), -1)
    differ = cdist(kernels, kernels) > SAME * float(np.linalg.norm(kernels, axis=1).max())
    np.fill_diagonal(differ, val=False)
    change = _change_by_swapping(projector_blocks(spaces.own))
    size = float(np.square(spaces.own).sum(axis=(0, 2)).max())
    return bool((change[differ] > CHANGES_NOTHING * size).all())


def projector_blocks(basis: Array) -> Array:
    """The projector onto a space, a block for each pair of channels: (channels, channels, x, x)."""
    rank, channels, positions = basis.shape
    flat = basis.reshape(rank, -1)
    projector: Array = (flat.T @ flat).reshape(channels, positions, channels, positions)
    return projector.transpose(0, 2, 1, 3)


def _change_by_swapping(blocks: Array) -> Array:
    """Squared change of a projector when two channels are swapped, for each two, (channels, channels)."""
    own = np.einsum("iixy->ixy", blocks)
    rows, diagonal = blocks.reshape(len(blocks), -1), own.reshape(len(blocks), -1)
    squares = np.square(blocks).sum(axis=(2, 3))
    corner = np.diag(squares)[:, np.newaxis] + squares - 2 * np.einsum("ixy,ijxy->ij", own, blocks)
    skew = 2 * (squares - np.einsum("ijxy,ijyx->ij", blocks, blocks))
    common, sizes = rows @ rows.T, squares.sum(axis=1)  # a product, because rows are long
    elsewhere = sizes[:, np.newaxis] + sizes - 2 * common - corner - corner.T
    change: Array = elsewhere + cdist(diagonal, diagonal, "sqeuclidean") / 2 + skew / 2
    return change


def _turn(spaces: Spaces, order: Order) -> Array:
    """What turns one basis into the other, (rank, rank): a rotation, if the order is right."""
    delivered, own = spaces.delivered, spaces.own[:, order]
    turn: Array = delivered.reshape(len(delivered), -1) @ own.reshape(len(own), -1).T
    return turn


def _distances_when(spaces: Spaces, order: Order) -> Array:
    """How far each delivered channel's rows of the projector are from each own one's, by an order."""
    turned = np.tensordot(_turn(spaces, order).T, spaces.delivered, 1)
    common = np.tensordot(turned, spaces.own, ([0, 2], [0, 2]))
    own, delivered = (np.square(basis).sum(axis=(0, 2)) for basis in spaces)
    squares: Array = delivered[:, np.newaxis] + own - 2 * common
    return np.sqrt(np.maximum(squares, 0))


def _fingerprints(basis: Array) -> Array:
    """Each channel's own block of the projector, (channels, window positions squared)."""
    blocks: Array = np.einsum("rcx,rcy->cxy", basis, basis, optimize=True)
    return blocks.reshape(len(blocks), -1)


def _distribution(features: Array) -> Array:
    """Quantiles of each channel over samples and positions, (channels, quantiles)."""
    values = np.moveaxis(features, 1, 0).reshape(features.shape[1], -1)
    return np.quantile(values, QUANTILES, axis=1).T


def _covariance(features: Array) -> Array:
    """How channels go together, (channels, channels)."""
    values = np.moveaxis(features, 1, 0).reshape(features.shape[1], -1).astype(np.float64)
    return np.atleast_2d(np.cov(values))


def _matched(distances: Array, method: str) -> FoundOrder:
    """The assignment of channels that fits best over all of them."""
    rows, order = linear_sum_assignment(distances)
    chosen = distances[rows, order]
    others = distances.copy()
    others[rows, order] = np.inf
    smallest = 1e-12 * max(float(distances.max()), 1e-300)
    margin = float((others.min(axis=1) / np.maximum(chosen, smallest)).min()) if len(rows) > 1 else np.inf
    return FoundOrder(order.astype(np.intp), method, margin)
