"""From a stored sample to the developer's input: colour mode, size, scale, normalisation.

Nothing is guessed: a sample whose shape is not the layer's is refused, unless the provider said how to
change it. What was done is recorded, so that the developer can do the same to its own data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

from mole.errors import ParameterError, ShapeError
from mole.progress import Progress, no_progress
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation, check_pixels, plain_data
from mole.scheme.shapes import Array, Shape, check_shape, shape_text
from mole.sources.source import BadSampleError, Outline, Sample, Source, Split, main_split

Mode = Literal["L", "RGB"]
"""What colours are converted to: grey, or red, green and blue."""
Resize = Literal["crop", "stretch"]
"""How an image is brought to size: scaled to fill it with the rest cut off, or distorted."""

MODES: tuple[Mode, ...] = get_args(Mode)
RESIZES: tuple[Resize, ...] = get_args(Resize)
CHANNELS_OF = {"L": 1, "RGB": 3}
IMAGE_CHANNELS = (1, 2, 3, 4)  # grey or colour, each with or without transparency


@dataclass(frozen=True)
class Preparation:
    """How samples become plain data.

    >>> grey = Sample(np.full((4, 4), 51, dtype=np.uint8), "hw")
    >>> preparation = Preparation((1, 2, 2), resize="stretch")
    >>> preparation.plain(preparation.shape(grey)[np.newaxis])
    array([[[[0.2, 0.2],
             [0.2, 0.2]]]], dtype=float32)

    Attributes:
        input_shape: what the first layer takes.
        normalisation: what its network expects; None for pixels between 0 and 1 as they are.
        mode: 'L' or 'RGB' to convert colours; None to leave them.
        resize: 'stretch' to the layer's size, 'crop' to fill it and cut off the rest; None to leave it.
            Both are plain text here because that is how a manifest records them; other text is refused.
        taker: what takes plain data, for messages: the first layer, or a front.
    """

    input_shape: Shape
    normalisation: Normalisation | None = None
    mode: str | None = None
    resize: str | None = None
    taker: Literal["layer", "front"] = field(default="layer", compare=False)

    takes_samples: ClassVar[bool] = True  # by their own numbers; views of samples have others

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_shape", check_shape(self.input_shape))
        if self.mode is not None and self.mode not in MODES:
            raise ParameterError(f"colour mode '{self.mode}' is unknown: use {' or '.join(MODES)}")
        if self.resize is not None and self.resize not in RESIZES:
            raise ParameterError(f"resizing '{self.resize}' is unknown: use {' or '.join(RESIZES)}")
        if (self.mode or self.resize) and len(self.input_shape) != 3:
            raise ParameterError(
                f"the {self.taker} takes {shape_text(self.input_shape)}, which is not an image: "
                "leave out mode and resize"
                + (", or give a front" if self.taker == "layer" and len(self.input_shape) == 1 else "")
            )

    @classmethod
    def for_layer(
        cls, layer: FirstLayer, *, mode: Mode | None = None, resize: Resize | None = None
    ) -> "Preparation":
        """What a first layer asks for."""
        return cls(layer.input_shape, layer.normalisation, mode, resize)

    def read(self, split: Split, index: int) -> npt.NDArray[Any]:
        """One sample of a split in the layer's input shape, in its own number type.

        Raises:
            BadSampleError: with its name and the reason, if it cannot be read or does not fit.
        """
        try:
            return self.shape(split.read(index))
        except ShapeError as error:
            raise BadSampleError(split.name_of(index), error.message, advice=error.advice) from None

    def samples(
        self, source: Source, count: int, *, skip_bad: bool = False, progress: Progress = no_progress
    ) -> Array:
        """Plain data of at most `count` samples, spread evenly over the main split: (n, *input_shape).

        Raises:
            BadSampleError: at the first sample that cannot be used, unless they are skipped; and where not
                one is left.
        """
        split = main_split(source)
        indices = np.linspace(0, len(split) - 1, min(count, len(split))).astype(int).tolist()
        plain = self.plain_samples(split, indices, skip_bad=skip_bad, progress=progress)
        return plain if len(plain) else self.plain_samples(split, indices)

    def plain_samples(
        self,
        split: Split,
        indices: Sequence[int],
        *,
        skip_bad: bool = False,
        progress: Progress = no_progress,
    ) -> Array:
        """Plain data of some samples of a split: (n, *input_shape).

        Raises:
            BadSampleError: at the first sample that cannot be used, unless they are skipped.
        """
        plain, used = np.empty((len(indices), *self.input_shape), np.float32), 0
        for done, index in enumerate(indices, start=1):
            try:
                plain[used] = self.plain(self.read(split, index)[np.newaxis])[0]
                used += 1
            except BadSampleError:
                if not skip_bad:
                    raise
            progress(done, len(indices))
        return plain[:used]

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
            raise self._misfit(values.shape, values.dtype, is_image=axes != "any")
        return self._usable(values)

    def view_of(self, values: npt.NDArray[Any], axes: str) -> npt.NDArray[Any] | None:
        """Samples of an array, (n, ...), all in the layer's input shape, as `shape` makes each of them.

        None where that takes more than another order of axes, or each one's pixels have to be looked at.
        """
        if values.dtype.kind != "u":
            return None
        if values.shape[1:] != self.input_shape or axes not in ("any", "hw"):
            values = values if axes == "any" else self._channels_first(values, axes)
        return values if values.shape[1:] == self.input_shape else None

    def check(self, outline: Outline) -> None:
        """Refuse a sample that `shape` would refuse, as far as its outline tells.

        Raises:
            ShapeError: in the same words.
        """
        shape, dtype = outline.shape, np.dtype(outline.dtype)
        if shape != self.input_shape or outline.axes not in ("any", "hw"):
            if outline.axes != "any":
                empty = np.broadcast_to(np.zeros((), dtype), shape)  # takes no room
                shape = self._channels_first(empty, outline.axes).shape
                if shape != self.input_shape and (self.mode is not None or self.resize is not None):
                    self._check_convertible(shape, dtype)
                    channels = shape[0] if self.mode is None else CHANNELS_OF[self.mode]
                    shape = (channels, *(shape if self.resize is None else self.input_shape)[1:])
            if shape != self.input_shape:
                raise self._misfit(shape, dtype, is_image=outline.axes != "any")
        check_pixels(np.empty(0, dtype), self.normalisation)

    def plain(self, shaped: npt.NDArray[Any]) -> Array:
        """Plain data from shaped samples, (b, *input_shape): from 0 to 1 and normalised; float32."""
        return plain_data(shaped, self.normalisation)

    def pixels(self, plain: Array, dtype: str = "uint8") -> npt.NDArray[Any]:
        """Undo `plain`: samples, (b, *input_shape), in the number type that they had in the source.

        Integers are rounded to the nearest, and so come back exactly as far as float32 can hold them.
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
        """The same view of one sample, or of each of several."""
        if axes == "hw":
            return values[..., np.newaxis, :, :]
        if axes == "either":  # an array such as 3x4x4: the layer knows how many channels there are
            axes = "chw" if values.shape[-3] == self.input_shape[0] else "hwc"
        return values if axes == "chw" else values.transpose(*range(values.ndim - 3), -1, -3, -2)

    def _convert(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        self._check_convertible(values.shape, values.dtype)
        if values.dtype == np.uint16:
            return self._convert_grey(values[0])
        image = Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))
        if self.mode is not None:
            image = image.convert(self.mode)
        if self.resize is not None:
            image = self._resized(image)
        return np.asarray(image).reshape(image.height, image.width, -1).transpose(2, 0, 1)

    def _convert_grey(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A grey image of 16 bits, which stays one: resized in 32-bit floats, in every channel the same."""
        if self.resize is not None:
            values = np.asarray(self._resized(Image.fromarray(values.astype(np.float32))))
            values = np.clip(np.rint(values), 0, 0xFFFF).astype(np.uint16)
        return np.stack([values] * (3 if self.mode == "RGB" else 1))

    def _check_convertible(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        if not _is_convertible(shape, dtype):
            raise ShapeError(
                f"it is {dtype}, and only 8-bit images and grey 16-bit ones can be resized or "
                "converted: make it 8-bit first"
            )
        if shape[0] not in IMAGE_CHANNELS:
            raise ShapeError(f"it has {shape[0]} channels, and an image has 1 to 4: give images")

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
        check_pixels(values, self.normalisation)
        return values

    def _misfit(self, shape: Shape, dtype: np.dtype[Any], *, is_image: bool) -> ShapeError:
        """What is wrong with a shape, and which parameters would help."""
        got, wanted = (shape_text(sides) for sides in (shape, self.input_shape))
        wrong = f"it is {got} and the {self.taker} takes {wanted}"
        if not is_image or len(self.input_shape) != len(shape):
            is_of_features = is_image and len(self.input_shape) == 1
            fix = "give data of that shape" + (
                ", or deliver features of these images, with a front" if is_of_features else ""
            )
            return ShapeError(f"{wrong}: {fix}")
        if not _is_convertible(shape, dtype):
            return ShapeError(
                f"{wrong}, and it is {dtype}, which cannot be resized or converted: make it 8-bit first"
            )
        channels, advice = self.input_shape[0], dict[str, str | tuple[str, ...]]()
        if shape[0] != channels:
            if channels not in (1, 3) or shape[0] not in IMAGE_CHANNELS:
                return ShapeError(f"{wrong}: give data with as many channels")
            advice["mode"] = "L" if channels == 1 else "RGB"
        if shape[1:] != self.input_shape[1:]:
            advice["resize"] = RESIZES
        return ShapeError(wrong, advice=advice)


def _is_convertible(shape: Shape, dtype: np.dtype[Any]) -> bool:
    """Whether an image, channels first, can be resized: 8 bits, or 16 in grey."""
    return dtype == np.uint8 or (dtype == np.uint16 and shape[0] == 1)
