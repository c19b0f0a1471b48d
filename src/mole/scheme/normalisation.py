"""The normalisation a network expects of its input, channel by channel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.scheme.shapes import Array

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

    def apply(self, images: npt.NDArray[Any]) -> Array:
        """Plain data from images: (b, channels, ...) of uint8, or of floats between 0 and 1."""
        if not isinstance(images, np.ndarray):
            raise ShapeError(f"images are a {type(images).__name__}, not a NumPy array: convert them first")
        if images.ndim < 2 or images.shape[1] != len(self.mean):
            raise ShapeError(
                f"images of shape {images.shape} do not have the {len(self.mean)} channels "
                "of the normalisation: expected (batch, channels, ...)"
            )
        if images.dtype != np.uint8 and not np.issubdtype(images.dtype, np.floating):
            raise ShapeError(f"images are {images.dtype}: give uint8, or floats between 0 and 1")
        if images.dtype != np.uint8 and images.size and np.abs(images).max() > FAR_FROM_ONE:
            raise ShapeError("images are floats far above 1: divide by their largest value, or give uint8")
        dtype = np.float32 if images.dtype == np.uint8 else images.dtype
        scale = 255.0 if images.dtype == np.uint8 else 1.0
        per_channel = (len(self.mean),) + (1,) * (images.ndim - 2)
        std = np.reshape(self.std, per_channel)
        gain = (1 / (scale * std)).astype(dtype)
        offset = (np.reshape(self.mean, per_channel) / std).astype(dtype)
        plain: Array = images.astype(dtype, order="C")
        plain *= gain
        plain -= offset
        return plain

    def undo(self, plain: Array) -> Array:
        """Pixels on a scale of 0 to 1 from plain data, (b, channels, ...), in its own dtype."""
        per_channel = (len(self.mean),) + (1,) * (plain.ndim - 2)
        pixels: Array = plain * np.reshape(self.std, per_channel).astype(plain.dtype)
        pixels += np.reshape(self.mean, per_channel).astype(plain.dtype)
        return pixels
