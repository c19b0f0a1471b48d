"""Pictures to try things on, and others like them: what a provider has besides, and what anybody can have.

A picture is small (`SIDE` pixels a side in colour), so that a change shows within a second: the largest
core is then a square of 972, and what takes longest, to learn a whitened one, grows with the third power
of that.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock

import numpy as np

from mole.errors import SourceError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array
from mole.sources.bundled import PRIVATE_PHOTOS, bundled_images, fashion_mnist, photograph
from mole.sources.images import ImageError, decode_image
from mole.sources.preparation import Preparation
from mole.sources.source import Sample

SIDE = 18
CHANNELS, KERNEL = 16, 3  # of the first layer
OTHERS = 1000  # images beside the picture, morphed with the same core; and as many public ones
MOST_UPLOADS = 8  # kept in memory; the oldest goes first
PHOTOS = dict(zip(PRIVATE_PHOTOS, ("A cat", "A cup of coffee", "A rocket"), strict=True))
CLOTHES = ("Ankle boot", "Shirt", "Bag")
PHOTO, CLOTHING = "photograph", "clothing"
_MAKING = Lock()


@dataclass(frozen=True, eq=False)
class Kind:
    """Pictures of one shape, and the first layer of a network for them.

    Attributes:
        name: 'photograph' or 'clothing'.
        layer: random kernels, as a network has before it is trained; known to the developer.
        private: plain images that the provider delivers besides, (n, *shape).
        public: plain images of the same kind that anybody can have.
    """

    name: str
    layer: FirstLayer
    private: Array
    public: Array

    @cached_property
    def mean(self) -> Array:
        """The mean of public images, (1, *shape): what anybody can draw without looking."""
        return np.asarray(self.public.mean(axis=0, keepdims=True))


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture to try things on: what it is called, what kind it is, and plain, (1, *shape)."""

    name: str
    kind: str
    plain: Array


LOOKS = {
    PHOTO: ((3, SIDE, SIDE), Normalisation((0.49, 0.45, 0.42), (0.25, 0.24, 0.25))),
    CLOTHING: ((1, 28, 28), Normalisation((0.286,), (0.353,))),
}


def kind_of(name: str) -> Kind:
    """The kind of that name; it takes a second or two when it is first asked for, by whomever."""
    with _MAKING:
        return _kind(name)


@cache
def _kind(name: str) -> Kind:
    layer = first_layer(name)
    images = bundled_images(layer.input_shape, private=OTHERS, public=OTHERS)
    return Kind(name, layer, layer.plain(images.private), layer.plain(images.public))


@cache
def first_layer(kind: str) -> FirstLayer:
    """A convolution with random kernels, the same at every start.

    >>> first_layer("photograph").output_shape
    (16, 18, 18)
    """
    shape, normalisation = LOOKS[kind]
    size = (CHANNELS, shape[0], KERNEL, KERNEL)
    kernels = np.random.default_rng(20).normal(size=size) / np.sqrt(shape[0] * KERNEL**2)
    return FirstLayer.conv(kernels, None, input_shape=shape, padding=1, normalisation=normalisation)


class Stock:
    """The pictures that can be chosen, by their ids: samples, and what visitors bring.

    Nothing is written anywhere: what a visitor brings is forgotten at the end, or when others come.
    """

    def __init__(self) -> None:
        self._samples = {**_photos(), **_clothes()}
        self._brought: dict[str, Picture] = {}

    @property
    def samples(self) -> Mapping[str, Picture]:
        """What comes with the software."""
        return self._samples

    def add(self, content: bytes) -> str:
        """Take an image file, cut and brought to size; the id that it gets.

        Raises:
            SourceError: if it is not an image that can be used; the message says why.
        """
        try:
            sample = decode_image(content)
        except ImageError as error:
            raise SourceError(f"this file cannot be used: {error}") from None
        name = f"yours-{secrets.token_hex(4)}"
        self._brought[name] = Picture("Your picture", PHOTO, _plain(sample, PHOTO))
        while len(self._brought) > MOST_UPLOADS:
            del self._brought[next(iter(self._brought))]
        return name

    def get(self, name: str) -> Picture:
        """A picture by its id.

        Raises:
            SourceError: if it is unknown, or was forgotten.
        """
        found = self._samples.get(name) or self._brought.get(name)
        if found is None:
            raise SourceError("this picture is not here any more: choose it again")
        return found


def _photos() -> dict[str, Picture]:
    return {
        name: Picture(title, PHOTO, _plain(Sample(np.asarray(photograph(name)), "hwc"), PHOTO))
        for name, title in PHOTOS.items()
    }


def _clothes() -> dict[str, Picture]:
    images = fashion_mnist()
    names = list(images["classes"])
    first = {title: int(np.flatnonzero(images["y_test"] == names.index(title))[0]) for title in CLOTHES}
    return {
        title.lower().replace(" ", "-"): Picture(
            title, CLOTHING, _plain(Sample(images["x_test"][index], "hw"), CLOTHING)
        )
        for title, index in first.items()
    }


def _plain(sample: Sample, kind: str) -> Array:
    """A sample as plain data of a kind: the middle of it, scaled to size, and normalised."""
    shape, normalisation = LOOKS[kind]
    mode = "L" if shape[0] == 1 else "RGB"
    preparation = Preparation(shape, normalisation, mode=mode, resize="crop")
    return preparation.plain(preparation.shape(sample)[np.newaxis])
