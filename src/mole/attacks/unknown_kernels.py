"""Kernels that nobody knows do not help: the row space of the augmented layer holds shifted copies of them.

In a window clear of the padding, the row of input channel a at position y of the first layer's matrix is
K[c, a, y - i], over channels c and window positions i: the kernel, moved. All of these lie in the row
space, which the delivery shows. "Every shifted copy of g lies in the row space" is a linear condition on g,
and its solutions are exactly the mixtures of the alpha kernels. Undoing the layer with any basis of them
gives the images, their colours mixed.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import Attack, Attacker, Finding, UpTo
from mole.attacks.tools.deconvolution import Deconvolution
from mole.attacks.tools.row_space import Window, delivered_space, find_window, published_space
from mole.attacks.tools.views import DeliveryView, LayerGeometry, NotApplicableError
from mole.scheme.shapes import Array, element_count, shape_text

AT_MOST = 256
MARGINS = (3, 2, 1)  # how much longer than the kernel the window is: the more, the surer
CLEAR = 3.0  # everything else must be this many times further from the row space than the last kernel


class Kernels(NamedTuple):
    """Kernels found, (channels, input channels, *kernel), and how clear-cut they are.

    `inside` and `outside` are the distances of the last kernel and of the next best candidate from the row
    space, as shares of their length.
    """

    weight: Array
    inside: float
    outside: float
    window: Window


def run(view: DeliveryView, rng: np.random.Generator) -> Finding:
    """Find the kernels up to a mix of input channels, then undo the layer."""
    kernels = find_kernels(view, rng)
    layer = view.geometry.layer(kernels.weight, view.augmented.bias, view.input_shape)
    undo = Deconvolution.of(layer)
    colours = view.input_shape[0]
    open_ = f"the mix of their {colours} colours" if colours > 1 else "their contrast"
    return Finding(
        words=(
            f"Without knowing the first layer's weights, the row space of the augmented layer gave its "
            f"kernels, and undoing them gives the images: only {open_} stays open."
        ),
        images=undo(view.features(AT_MOST)),
        up_to=UpTo.COLOURS,
        facts={
            "kernels found": colours,
            "their distance from the row space": float(f"{kernels.inside:.2g}"),
            "distance of the next best": float(f"{kernels.outside:.2g}"),
            "window": list(kernels.window.sides),
            "numbers pinned down": undo.rank,
            "numbers in an image": undo.elements,
        },
    )


def find_kernels(view: DeliveryView, rng: np.random.Generator) -> Kernels:
    """The kernels in the delivered order of channels, up to a mix of input channels."""
    geometry, colours = view.geometry, view.input_shape[0]
    window = _window(view)
    rank = _usual_rank(view, window, rng)
    basis = delivered_space(view.augmented, window, rng, rank)
    channels, taps = basis.shape[1], element_count(geometry.kernel)
    outside = np.eye(channels * element_count(window.sides))
    outside -= basis.reshape(len(basis), -1).T @ basis.reshape(len(basis), -1)
    condition = np.zeros((channels * taps, channels * taps))
    places = _places(geometry, window, channels)
    for place in places:
        condition += outside[np.ix_(place, place)]
    squares, vectors = np.linalg.eigh(condition / len(places))
    distances = np.sqrt(np.maximum(squares, 0))
    inside, beyond = float(distances[colours - 1]), float(distances[min(colours, len(distances) - 1)])
    if beyond < CLEAR * max(inside, 1e-9):
        raise NotApplicableError(
            f"the row space should hold the shifted copies of {colours} kernels, and where these end does "
            f"not show (the last lies {inside:.1g} outside it, the next {beyond:.1g}): the kernels have "
            "zeros at their edges, or depend on one another, or the layer is stored too coarsely"
        )
    weight = vectors[:, :colours].T.reshape(colours, channels, *geometry.kernel)
    return Kernels(np.ascontiguousarray(np.moveaxis(weight, 0, 1)), inside, beyond, window)


def _window(view: DeliveryView) -> Window:
    geometry = view.geometry
    if not geometry.kernel:
        raise NotApplicableError("a Linear layer has no kernel that moves, so there are no shifted copies")
    if max(geometry.stride) > 1:
        raise NotApplicableError(
            f"with a stride of {shape_text(geometry.stride)} the pixels that one step of the "
            "kernel passes over come back as a mixture, and not as a picture"
        )
    for margin in MARGINS:
        window = find_window(geometry, view.input_shape, view.augmented.output_shape, margin=margin)
        if window is not None:
            return window
    raise NotApplicableError(
        "the layer has too few channels, or its images too little room, for a row space that is smaller "
        "than a window larger than the kernel"
    )


def _usual_rank(view: DeliveryView, window: Window, rng: np.random.Generator) -> int:
    """The rank of the window for kernels in general: the geometry decides."""
    weight = rng.normal(size=(view.augmented.output_shape[0], view.input_shape[0], *view.geometry.kernel))
    return len(published_space(view.geometry.layer(weight, None, view.input_shape), window))


def _places(geometry: LayerGeometry, window: Window, channels: int) -> list[npt.NDArray[np.intp]]:
    """For every shift inside the window: where in it each element of (channel, *tap) stands."""
    axes = len(geometry.kernel)
    taps = np.indices(geometry.kernel).reshape(axes, -1)
    reach = [d * (k - 1) for d, k in zip(geometry.dilation, geometry.kernel, strict=True)]
    shifts = np.ndindex(*(side - far for side, far in zip(window.sides, reach, strict=True)))
    size = element_count(window.sides)
    offsets = size * np.arange(channels)[:, np.newaxis]
    places = []
    for shift in shifts:
        # An input position y is under tap t of the output at y - dilation t.
        at = [shift[axis] + reach[axis] - geometry.dilation[axis] * taps[axis] for axis in range(axes)]
        places.append((offsets + np.ravel_multi_index(at, window.sides)).ravel())
    return places


ATTACK = Attack(
    name="unknown-kernels",
    title="Deconvolution with unknown kernels",
    attacker=Attacker.THIEF,
    view=DeliveryView,
    run=run,
    source="this project: keeping the first layer's weights secret protects nothing",
    advice=(
        "Keep a delivery away from others: whoever has all of it needs neither key nor weights. A stride "
        "of two or more stops this way of undoing it; a developer who knows its own layer has another."
    ),
)
