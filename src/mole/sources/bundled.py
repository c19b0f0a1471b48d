"""Images that come with the software, for a demonstration or an audit before any real data is touched."""

from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from mole.errors import MissingExtraError, ParameterError
from mole.scheme.shapes import Shape, shape_text

# Photographs inside scikit-image, free to use. The two groups show different things.
PRIVATE_PHOTOS = ("chelsea", "coffee", "rocket")
PUBLIC_PHOTOS = ("astronaut", "immunohistochemistry", "hubble_deep_field")
SMALLEST_CROP = 0.3  # of a photograph's shorter side

Arrays = dict[str, npt.NDArray[Any]]
Pixels = npt.NDArray[np.uint8]


def fashion_mnist() -> Arrays:
    """The part of Fashion-MNIST that ships with the package, by name.

    `x_private`, `x_public` and `x_test` are images, (n, 28, 28) of uint8; `y_private`, `y_public` and
    `y_test` the class of each; `classes` their names. The private images stand for the provider's, the
    public ones for what anybody can have.

    >>> images = fashion_mnist()
    >>> images["x_private"].shape, images["x_test"].shape, str(images["classes"][images["y_test"][0]])
    ((3000, 28, 28), (2000, 28, 28), 'Ankle boot')
    """
    path = files("mole.sources").joinpath("data/fashion-mnist.npz")
    with path.open("rb") as file, np.load(file) as arrays:
        return {name: arrays[name] for name in arrays.files}


class BundledImages(NamedTuple):
    """Images that stand for the provider's, others of the same kind, and where they come from."""

    private: Pixels
    public: Pixels
    origin: str


def bundled_images(shape: Shape, *, private: int, public: int, seed: int = 0) -> BundledImages:
    """8-bit images of a shape, (n, channels, height, width)."""
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise ParameterError(
            f"there are no bundled images of shape {shape_text(shape)}: "
            "make a delivery of your own data, and audit that"
        )
    if shape[0] == 1:
        images = fashion_mnist()
        mine, others = images["x_private"][:private], images["x_public"][:public]
        return BundledImages(_resized(mine, shape), _resized(others, shape), "Fashion-MNIST")
    rng = np.random.default_rng(seed)
    crops = [
        cut_outs(names, shape, count, rng)
        for names, count in ((PRIVATE_PHOTOS, private), (PUBLIC_PHOTOS, public))
    ]
    return BundledImages(crops[0], crops[1], "cut-outs of a few photographs")


def _resized(images: Pixels, shape: Shape) -> Pixels:
    height, width = shape[1:]
    if images.shape[1:] != (height, width):
        images = np.stack([np.asarray(Image.fromarray(image).resize((width, height))) for image in images])
    return images[:, np.newaxis]


def photograph(name: str) -> Image.Image:
    """One of the photographs inside scikit-image, in colour.

    >>> photograph("chelsea").size
    (451, 300)

    Raises:
        MissingExtraError: without scikit-image.
    """
    try:
        import skimage.data  # noqa: PLC0415  (half a second)
    except ImportError:
        raise MissingExtraError("photographs come from scikit-image", "audit") from None
    return Image.fromarray(np.asarray(getattr(skimage.data, name)())).convert("RGB")


def cut_outs(names: tuple[str, ...], shape: Shape, count: int, rng: np.random.Generator) -> Pixels:
    """Random cut-outs, some of them mirrored, scaled to size."""
    photos = [photograph(name) for name in names]
    height, width = shape[1:]
    images = np.empty((count, 3, height, width), np.uint8)
    for index in range(count):
        photo = photos[index % len(photos)]
        shorter = min(photo.size)
        side = int(rng.uniform(SMALLEST_CROP, 1) * shorter)
        left, top = (int(rng.integers(0, length - side + 1)) for length in photo.size)
        box = (left, top, left + side, top + side)
        crop = photo.resize((width, height), box=box, reducing_gap=2)  # far faster, and looks the same
        pixels = np.asarray(crop)
        images[index] = (pixels[:, ::-1] if rng.random() < 0.5 else pixels).transpose(2, 0, 1)
    return images
