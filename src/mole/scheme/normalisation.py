"""The normalisation a network expects of its input, channel by channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.scheme.shapes import Array, FloatType

FAR_FROM_ONE = 2.0  # resampling may overshoot a little; pixels up to 255 do not


@dataclass(frozen=True)
class Normalisation:
    """Mean and standard deviation of each channel, for pixels on a scale of 0 to 1.

    >>> grey = Normalisation(mean=(0.5,), std=(0.25,))
    >>> grey.apply(np.full((1, 1, 2, 2), 255, dtype=np.uint8))
    array([[[[2., 2.],
             [2., 2.]]]], dtype=float32)
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            mean, std = (tuple(float(x) for x in values) for values in (self.mean, self.std))
        except (TypeError, ValueError, OverflowError):
            raise ParameterError("mean and std are sequences of numbers, one per channel") from None
        if not mean or len(mean) != len(std):
            raise ParameterError(f"mean has {len(mean)} values and std {len(std)}: give one per channel")
        if not np.isfinite([*mean, *std]).all() or min(std) <= 0:
            raise ParameterError("mean must be finite and std finite and positive")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "std", std)

    @classmethod
    def of_channels(
        cls, mean: float | Sequence[float], std: float | Sequence[float], channels: int
    ) -> "Normalisation":
        """A normalisation of so many channels; a single number stands for each of them.

        >>> Normalisation.of_channels(0.5, (0.2, 0.25, 0.3), 3)
        Normalisation(mean=(0.5, 0.5, 0.5), std=(0.2, 0.25, 0.3))

        Raises:
            ParameterError: if it has neither one number nor one for each channel.
        """
        lists: dict[str, list[Any]] = {}
        for name, given in (("mean", mean), ("std", std)):
            values: Any = given
            lists[name] = [*values] if np.ndim(values) else [values]
            if len(lists[name]) not in (1, channels):
                raise ParameterError(
                    f"{name} has {len(lists[name])} values and the input {channels} channels: give one, or "
                    "one per channel"
                )
        every = [values * channels if len(values) == 1 else values for values in lists.values()]
        return cls(tuple(every[0]), tuple(every[1]))

    def apply(self, images: npt.NDArray[Any]) -> Array:
        """Images, (b, channels, ...) of unsigned integers or of floats from 0 to 1, normalised.

        Floats keep their type; integers become float32.
        """
        check_pixels(images, self)
        return self._applied(images)

    def _applied(self, images: npt.NDArray[Any], out: Array | None = None) -> Array:
        if images.ndim < 2 or images.shape[1] != len(self.mean):
            raise ShapeError(
                f"images of shape {images.shape} do not have the {len(self.mean)} channels "
                "of the normalisation: expected (batch, channels, ...)"
            )
        if images.dtype == np.uint8:  # by far the most common: scale and normalise in one product
            plain, scale = _copied(images, np.dtype(np.float32), out), 255.0
        else:
            plain, scale = _from_zero_to_one(images, out), 1.0
        per_channel = (len(self.mean),) + (1,) * (images.ndim - 2)
        std = np.reshape(self.std, per_channel)
        plain *= (1 / (scale * std)).astype(plain.dtype)
        plain -= (np.reshape(self.mean, per_channel) / std).astype(plain.dtype)
        return plain

    def undo(self, plain: Array) -> Array:
        """Pixels on a scale of 0 to 1 from plain data, (b, channels, ...), in its own dtype."""
        per_channel = (len(self.mean),) + (1,) * (plain.ndim - 2)
        pixels: Array = plain * np.reshape(self.std, per_channel).astype(plain.dtype)
        pixels += np.reshape(self.mean, per_channel).astype(plain.dtype)
        return pixels


def plain_data(
    images: npt.NDArray[Any], normalisation: Normalisation | None, out: Array | None = None
) -> Array:
    """Plain data from images, (b, channels, ...): on a scale of 0 to 1, then normalised; always float32.

    >>> plain_data(np.array([[0, 51, 255]], dtype=np.uint8), None)
    array([[0. , 0.2, 1. ]], dtype=float32)

    Whatever becomes plain data goes through here, so a batch in Python and a delivery agree to the bit.
    Without a normalisation, floats are taken as they are. It goes into `out` if that is given: float32, of
    the same shape, in row-major order.

    Raises:
        ShapeError: for what cannot be pixels.
    """
    check_pixels(images, normalisation)
    if images.dtype.kind == "f":
        images = images.astype(np.float32, order="C")
    if normalisation is None:
        return _from_zero_to_one(images, out)
    return normalisation._applied(images, out)


def check_pixels(values: npt.NDArray[Any], normalisation: Normalisation | None) -> None:
    """Refuse what cannot be pixels, or not on the scale that a normalisation expects."""
    if not isinstance(values, np.ndarray):
        raise ShapeError(f"images are a {type(values).__name__}, not a NumPy array: convert them first")
    if values.dtype.kind not in "uf":
        raise ShapeError(
            f"pixels are {values.dtype}: give them as unsigned integers, or as floats from 0 to 1"
        )
    if values.dtype.kind == "u" or not values.size:
        return
    largest = np.abs(values).max()
    if not largest <= np.finfo(np.float32).max:  # a NaN is not, either
        raise ShapeError("pixels have a NaN, an infinity or a number beyond 32 bits: remove it")
    if normalisation is not None and largest > FAR_FROM_ONE:
        raise ShapeError(
            f"pixels are floats up to {largest:.4g}, far above 1: divide them by their largest value, "
            "or give uint8"
        )


def _from_zero_to_one(images: npt.NDArray[Any], out: Array | None = None) -> Array:
    """A copy in row-major order: integers divided by the largest of their type, floats unchanged."""
    if images.dtype.kind == "f":
        return _copied(images, images.dtype, out)
    scaled = _copied(images, np.dtype(np.float32), out)
    scaled /= np.float32(np.iinfo(images.dtype).max)
    return scaled


def _copied(images: npt.NDArray[Any], dtype: FloatType, out: Array | None) -> Array:
    if out is None:
        return images.astype(dtype, order="C")
    np.copyto(out, images, casting="unsafe")
    return out
