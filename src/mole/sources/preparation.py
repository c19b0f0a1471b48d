"""From a stored sample to the developer's input: colour mode, size, scale, normalisation.

Nothing is guessed: a sample whose shape is not the layer's is refused, unless the provider said how to
change it. What was done is recorded, so that the developer can do the same to its own data.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

from mole.errors import ParameterError, ShapeError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import FAR_FROM_ONE, Normalisation
from mole.scheme.shapes import Array, Shape, check_shape
from mole.sources.source import BadSampleError, Sample, Split

Mode = Literal["L", "RGB"]
Resize = Literal["crop", "stretch"]
MODES = ("L", "RGB")
RESIZES = ("stretch", "crop")
IMAGE_CHANNELS = (1, 2, 3, 4)  # grey or colour, each with or without transparency


@dataclass(frozen=True)
class Preparation:
    """How samples become plain data.

    Attributes:
        input_shape: what the first layer takes.
        normalisation: what its network expects; None for pixels between 0 and 1 as they are.
        mode: 'L' or 'RGB' to convert colours; None to leave them.
        resize: 'stretch' to the layer's size, 'crop' to fill it and cut the rest; None to leave it.
    """

    input_shape: Shape
    normalisation: Normalisation | None = None
    mode: str | None = None
    resize: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_shape", check_shape(self.input_shape))
        if self.mode is not None and self.mode not in MODES:
            raise ParameterError(f"colour mode '{self.mode}' is unknown: use {' or '.join(MODES)}")
        if self.resize is not None and self.resize not in RESIZES:
            raise ParameterError(f"resizing '{self.resize}' is unknown: use {' or '.join(RESIZES)}")
        if (self.mode or self.resize) and len(self.input_shape) != 3:
            raise ParameterError(
                f"the layer takes {'x'.join(map(str, self.input_shape))}, which is no image: "
                "leave out the colour mode and the resizing"
            )

    @classmethod
    def for_layer(
        cls, layer: FirstLayer, *, mode: str | None = None, resize: str | None = None
    ) -> "Preparation":
        """What a first layer asks for."""
        return cls(layer.input_shape, layer.normalisation, mode, resize)

    def shape(self, sample: Sample) -> npt.NDArray[Any]:
        """A sample in the layer's input shape, in its own number type.

        Raises:
            ShapeError: if it has another shape and nobody said how to change it, or cannot be pixels.
        """
        values, axes = sample
        if values.shape == self.input_shape and axes in ("any", "hw"):
            return self._usable(values)
        if axes != "any":
            values = self._channels_first(values, axes)
            if values.shape != self.input_shape and (self.mode is not None or self.resize is not None):
                values = self._convert(values)
        if values.shape != self.input_shape:
            raise ShapeError(self._misfit(values.shape, is_image=axes != "any"))
        return self._usable(values)

    def plain(self, shaped: npt.NDArray[Any]) -> Array:
        """Plain data from shaped samples, (b, *input_shape): scaled to 0..1 and normalised; float32."""
        if shaped.dtype == np.uint8 and self.normalisation is not None:
            return self.normalisation.apply(shaped)
        scaled = shaped.astype(np.float32)
        if shaped.dtype.kind == "u":
            scaled /= np.float32(np.iinfo(shaped.dtype).max)
        return scaled if self.normalisation is None else self.normalisation.apply(scaled)

    def pixels(self, plain: Array, dtype: str = "uint8") -> npt.NDArray[Any]:
        """Undo `plain`: samples, (b, *input_shape), in the number type that they had in the source.

        Whole numbers are rounded to the nearest, and so come back exactly as far as float32 can hold them.
        Floats come back as float32, whatever they were: more digits do not survive.
        """
        values = plain.astype(np.float32)
        if self.normalisation is not None:
            values = self.normalisation.undo(values)
        if np.dtype(dtype).kind != "u":
            return values
        top = np.iinfo(dtype).max
        exact: Array = values if top < 1 << 24 else values.astype(np.float64)
        largest = float(top) if int(float(top)) <= top else float(np.nextafter(float(top), 0))
        whole: npt.NDArray[Any] = np.clip(np.rint(exact * exact.dtype.type(top)), 0, largest)
        return whole.astype(dtype)

    def _channels_first(self, values: npt.NDArray[Any], axes: str) -> npt.NDArray[Any]:
        if axes == "hw":
            return values[np.newaxis]
        if axes == "either":  # an array such as 3x4x4: the layer knows how many channels there are
            axes = "chw" if values.shape[0] == self.input_shape[0] else "hwc"
        return values if axes == "chw" else values.transpose(2, 0, 1)

    def _convert(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if values.dtype != np.uint8:
            raise ShapeError(
                f"it is {values.dtype}, and only 8-bit images can be resized or converted: "
                "make it 8-bit first"
            )
        if values.shape[0] not in IMAGE_CHANNELS:
            raise ShapeError(f"it has {values.shape[0]} channels, and an image has 1 to 4: give images")
        image = Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))
        if self.mode is not None:
            image = image.convert(self.mode)
        if self.resize is not None:
            image = self._resized(image)
        return np.asarray(image).reshape(image.height, image.width, -1).transpose(2, 0, 1)

    def _resized(self, image: Image.Image) -> Image.Image:
        height, width = self.input_shape[-2:]
        if self.resize == "stretch":
            return image.resize((width, height), Image.Resampling.BILINEAR)
        factor = max(width / image.width, height / image.height)
        size = (max(width, round(image.width * factor)), max(height, round(image.height * factor)))
        image = image.resize(size, Image.Resampling.BILINEAR)
        left, top = (image.width - width) // 2, (image.height - height) // 2
        return image.crop((left, top, left + width, top + height))

    def _usable(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if values.dtype.kind not in "uf":
            raise ShapeError(
                f"it is {values.dtype}: give pixels as unsigned whole numbers, or as floats from 0 to 1"
            )
        if values.dtype.kind == "f":
            largest = np.abs(values).max()
            if not largest <= np.finfo(np.float32).max:  # a NaN is not, either
                raise ShapeError("it has a NaN, an infinity or a number beyond 32 bits: remove it")
            if self.normalisation is not None and largest > FAR_FROM_ONE:
                raise ShapeError(
                    f"its floats go up to {largest:.4g}, and pixels go from 0 to 1: "
                    "divide them, or give uint8"
                )
        return values

    def _misfit(self, shape: Shape, *, is_image: bool) -> str:
        """What is wrong with a shape, and which options would mend it."""
        got, wanted = ("x".join(map(str, sides)) for sides in (shape, self.input_shape))
        wrong = f"it is {got} and the layer takes {wanted}"
        if not is_image or len(self.input_shape) != len(shape):
            return f"{wrong}: give data of that shape"
        channels, hints = self.input_shape[0], []
        if shape[0] != channels:
            if channels not in (1, 3) or shape[0] not in IMAGE_CHANNELS:
                return f"{wrong}: give data with as many channels"
            hints.append(f"--mode {'L' if channels == 1 else 'RGB'}")
        if shape[1:] != self.input_shape[1:]:
            hints.append("--resize crop or --resize stretch")
        return f"{wrong}: add {' and '.join(hints)}"


def shaped_sample(split: Split, index: int, preparation: Preparation) -> npt.NDArray[Any]:
    """A sample in the layer's input shape, in its own number type; raises BadSampleError."""
    try:
        return preparation.shape(split.read(index))
    except ShapeError as error:
        raise BadSampleError(split.name_of(index), str(error)) from None
