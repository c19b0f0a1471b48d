"""Whether a first layer copies pixels: what a provider should know before it augments the layer.

A kernel copies a pixel if nearly all of its weight lies at one place: its features are then the image
itself, in one colour or a mix of colours. Two kernels can do so together: one is r, the other r and
something at one place, and their difference is a copy. What is measured is the share of a kernel's energy
(its sum of squares) at one place, and that of the best combination of two kernels.

That finds copies, not everything that shows images. A layer with as many independent kernels as a patch has
numbers can be undone, be it meant well or not, and a copy that is spread over three kernels or more looks
like any other such layer. `mole.provider.review` says how much of an image a layer's features pin down.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array

ALONE = 0.95  # share at one place above which a kernel copies; trained ones reach 0.92, textbook ones 0.89
TOGETHER = 0.99  # the same of two kernels: many pairs are tried, and some come near by chance
CHANCE = 1e-3  # expected number of pairs of random kernels that may look like a copy, in a whole layer
AMPLIFICATION = 1e5  # by how much a difference may be enlarged: 32-bit features drown in rounding beyond
NEAREST = 1e-12  # of a share to 1: what rounding leaves
PAIRS_AND_PLACES = 1 << 24  # that are all looked at; of more, pairs that are alike on half of the places
ALIKE = 0.95
AT_ONCE = 1 << 22  # numbers in an array of pairs
MOST_CHANNELS = 1 << 14  # that are compared in pairs: a minute's work if they are long
MOST_PAIRS = 1 << 20  # that are alike and looked at more closely: likewise

Indices = npt.NDArray[np.intp]


class Copies(NamedTuple):
    """Output channels that copy a pixel each, and pairs of others that do so together.

    Attributes:
        channels, pairs: their numbers.
        not_looked_at: what was too much to be looked at, so that nothing is known of it; empty as a rule.
    """

    channels: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    not_looked_at: str = ""

    @property
    def words(self) -> str:
        """In a few words; empty where nothing is copied.

        >>> Copies((), ()).words, Copies((4,), ()).words
        ('', 'channel 4 copies single pixels')
        >>> Copies((0, 4), ((1, 2), (1, 3))).words
        'channels 0, 4 copy single pixels; channels 1 and 2 do so together, and 1 more pairs'
        """
        words = []
        if len(self.channels) == 1:
            words.append(f"channel {self.channels[0]} copies single pixels")
        elif self.channels:
            some = ", ".join(map(str, self.channels[:4])) + (", ..." if len(self.channels) > 4 else "")
            words.append(f"channels {some} copy single pixels")
        if self.pairs:
            verb = "do so" if words else "copy single pixels"
            more = f", and {len(self.pairs) - 1} more pairs" if len(self.pairs) > 1 else ""
            words.append(f"channels {self.pairs[0][0]} and {self.pairs[0][1]} {verb} together{more}")
        return "; ".join(words)


def copies_of(layer: FirstLayer) -> Copies:
    """Which channels, or pairs of them, copy pixels."""
    kernels = unit_kernels(layer)
    alone = np.square(kernels).sum(axis=2).max(axis=1) >= ALONE
    others = np.flatnonzero(~alone & kernels.any(axis=(1, 2)))
    numbers = kernels.shape[1] * (layer.weight.shape[1] if layer.kernel else kernels.shape[2])
    enough = _pair_threshold(len(others), kernels.shape[1], numbers)
    found: list[tuple[int, int]] = []
    tried, not_looked_at = 0, ""
    if len(others) > MOST_CHANNELS:
        not_looked_at = f"pairs of its {len(others)} channels, of which {MOST_CHANNELS} can be compared"
    for one, other in () if not_looked_at else _candidates(kernels[others]):
        tried += len(one)
        if tried > max(MOST_PAIRS, PAIRS_AND_PLACES // kernels.shape[1]):
            not_looked_at = f"all pairs of its channels, of which more than {MOST_PAIRS} are alike"
            break
        shares = pair_shares(kernels[others[one]], kernels[others[other]])
        found += [(int(others[one[at]]), int(others[other[at]])) for at in np.flatnonzero(shares >= enough)]
    return Copies(tuple(np.flatnonzero(alone).tolist()), tuple(found), not_looked_at)


def refuse_copying(layer: FirstLayer, name: str = "the first layer") -> None:
    """Raise a ParameterError that says which channels copy pixels, if any do or it cannot be told."""
    copies = copies_of(layer)
    if copies.words:
        problem = f"would show your images as they are ({copies.words})"
    elif copies.not_looked_at:
        problem = f"may show your images as they are: it is too large to look at {copies.not_looked_at}"
    else:
        return
    raise ParameterError(
        f"{name} {problem}: ask its sender for another, or allow it", advice={"allow_copying_layer": True}
    )


def unit_kernels(layer: FirstLayer) -> Array:
    """Kernels of length 1, (channels, places, colours); a kernel of zeros stays one."""
    colours = layer.input_channels
    if not layer.kernel:  # a Linear layer's elements are colours and places, where the sample is an image
        colours = layer.input_shape[0] if len(layer.input_shape) > 2 else 1
    kernels = layer.ungrouped_weight.reshape(layer.channels, colours, -1).transpose(0, 2, 1)
    kernels = kernels.astype(np.float64)
    for measure in (np.abs(kernels).max(axis=(1, 2)), None):  # first the largest: squares may underflow
        size = np.linalg.norm(kernels, axis=(1, 2)) if measure is None else measure
        kernels /= np.where(size > 0, size, 1)[:, np.newaxis, np.newaxis]
    return kernels


def _pair_threshold(count: int, places: int, numbers: int) -> float:
    """The share at one place above which a pair is no chance.

    At each place, two random kernels of `numbers` elements come within d of a copy with a chance of about d
    to the power of (numbers - colours - 1) / 2.
    """
    power = (numbers - numbers / places - 1) / 2
    tries = max(1, count * (count - 1) // 2 * places)
    by_chance = (CHANCE / tries) ** (1 / power) if power > 0 else 0.0
    return 1 - max(NEAREST, min(1 - TOGETHER, by_chance))


def _candidates(kernels: Array) -> Iterator[tuple[Indices, Indices]]:
    """Pairs of kernels to look at, some at a time.

    Where one kernel is another and something at one place, the two are alike on the half of the places that
    does not hold it. So where all pairs would be too many, those that are alike on neither are left out.
    """
    count, places, colours = kernels.shape
    if count < 2 or places < 2:
        return
    step = max(1, AT_ONCE // (places * colours))
    is_small = count * count * places <= PAIRS_AND_PLACES
    for one, other in (np.triu_indices(count, 1),) if is_small else _alike(kernels):
        for start in range(0, len(one), step):
            yield one[start : start + step], other[start : start + step]


def _alike(kernels: Array) -> Iterator[tuple[Indices, Indices]]:
    """Pairs of kernels that are alike on half of the places, for some rows of kernels at a time."""
    count = len(kernels)
    halves = []
    for half in (kernels[:, ::2].reshape(count, -1), kernels[:, 1::2].reshape(count, -1)):
        length = np.linalg.norm(half, axis=1)
        halves.append((half / np.where(length > 0, length, 1)[:, np.newaxis]).astype(np.float32))
    step = max(1, AT_ONCE // count)
    for start in range(0, count, step):
        alike = np.zeros((min(step, count - start), count - start), bool)
        for unit in halves:
            alike |= np.abs(unit[start : start + step] @ unit[start:].T) >= ALIKE
        one, other = np.nonzero(np.triu(alike, 1))
        yield one + start, other + start


def pair_shares(one: Array, other: Array) -> Array:
    """The largest share at one place that a combination of two kernels has.

    Pairs of kernels, (pairs, places, colours) each, to (pairs,). It is the larger eigenvalue of the 2x2
    matrix of products at that place against the one of all products. Two kernels that are all but the same
    differ by rounding errors only: 0 for these.
    """
    at_one, at_other, at_both = (
        np.einsum("npc,npc->np", a, b) for a, b in ((one, one), (other, other), (one, other))
    )
    product = at_both.sum(axis=1, keepdims=True)
    determinant = 1 - product**2
    tells = determinant[:, 0] > AMPLIFICATION**-2
    scale = np.where(tells, determinant[:, 0], 1)[:, np.newaxis]
    trace = (at_one + at_other - 2 * product * at_both) / scale
    minor = (at_one * at_other - at_both**2) / scale
    larger = trace / 2 + np.sqrt(np.maximum(trace**2 / 4 - minor, 0))
    shares: Array = np.where(tells, larger.max(axis=1), 0)
    return shares
