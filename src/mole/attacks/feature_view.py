"""Looking is enough: morphed data times the augmented layer gives feature maps, and those are pictures.

It takes no trick, and no layer of one's own: a delivery holds both factors.
"""

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import Attack, Attacker, Finding, UpTo
from mole.attacks.tools.views import DeliveryView, LayerGeometry, NotApplicableError
from mole.scheme.shapes import Array, Shape

AT_MOST = 64  # images; each has as many maps as the layer has channels


def run(view: DeliveryView, rng: np.random.Generator) -> Finding:
    """Multiply, and pick the map that looks most like a picture."""
    if not view.geometry.kernel:
        raise NotApplicableError(
            "a Linear layer's features are numbers without positions: there is no picture to look at"
        )
    maps = view.features(AT_MOST)
    if max(maps.shape[2:]) < 2:
        raise NotApplicableError(
            "this layer gives one number per channel of an image: no picture to look at"
        )
    correlation, energy = picture_likeness(maps)
    smoothness = np.clip(correlation, 0, 1)
    best = int(np.argmax(smoothness * energy))
    picture = _as_input(maps[:, best], view.geometry, view.input_shape)
    return Finding(
        words=(
            f"Multiplying morphed data by the augmented layer gives {maps.shape[1]} pictures of each "
            f"image. The one shown is number {best + 1}, picked without knowing the images as the "
            f"smoothest of the strong ones: its neighbouring pixels correlate at {smoothness[best]:.2f}."
        ),
        images=np.repeat(picture[:, np.newaxis], view.input_shape[0], axis=1),
        up_to=UpTo.CONTRAST,
        maps=maps,
        facts={
            "maps of an image": maps.shape[1],
            "map shown": best + 1,  # counted as in the words
            "correlation of its neighbouring pixels": round(float(smoothness[best]), 3),
        },
    )


def picture_likeness(maps: Array) -> tuple[Array, Array]:
    """Correlation of neighbouring pixels, and energy, of each channel: (n, channels, *grid) to (channels,).

    Both are about what varies inside each image. Neighbours in a picture are alike, those in noise are not.

    >>> ramp, noise = np.mgrid[0:8, 0:8][0] * 1.0, np.array([[1.0, -1.0] * 4, [-1.0, 1.0] * 4] * 4)
    >>> correlation, energy = picture_likeness(np.stack([ramp, noise])[np.newaxis])
    >>> correlation.round(2).tolist(), energy.round(2).tolist()
    ([0.95, -1.0], [5.25, 1.0])
    """
    values = maps.astype(np.float64)
    inner = tuple(range(2, values.ndim))
    everything = (0, *inner)
    values = values - values.mean(axis=inner, keepdims=True)
    energy = np.square(values).mean(axis=everything)
    steps = [
        np.square(np.diff(values, axis=axis)).mean(axis=everything)
        for axis in inner
        if values.shape[axis] > 1
    ]
    # Half the mean square of steps between neighbours is energy times (1 - correlation).
    return 1 - np.mean(steps, axis=0) / (2 * np.maximum(energy, 1e-300)), energy


def _as_input(maps: Array, geometry: LayerGeometry, input_shape: Shape) -> Array:
    """Maps, (n, *grid), at the images' size: each pixel takes the output whose kernel lies over it."""
    for axis, side in enumerate(input_shape[1:]):
        maps = maps.take(_nearest_output(geometry, axis, side, maps.shape[axis + 1]), axis=axis + 1)
    return maps


def _nearest_output(geometry: LayerGeometry, axis: int, side: int, outputs: int) -> npt.NDArray[np.intp]:
    middle = geometry.dilation[axis] * (geometry.kernel[axis] - 1) / 2 - geometry.padding[axis][0]
    nearest = np.rint((np.arange(side) - middle) / geometry.stride[axis])
    return np.clip(nearest, 0, outputs - 1).astype(np.intp)


ATTACK = Attack(
    name="feature-view",
    title="Looking at feature maps",
    attacker=Attacker.THIEF,
    view=DeliveryView,
    run=run,
    source="this project: the paper shows morphed data, and not what the augmented layer makes of it",
    advice=(
        "Keep the augmented layer from everybody who should not see the images: together with morphed data "
        "it gives pictures. A delivery holds both, so send and store it as you would the images."
    ),
)
