"""Views for tests of attacks: a key, a delivery in memory, and what an attacker has of it."""

import os

import numpy as np
import pytest

import mole
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.views import DeliveryView, DeveloperView, InjectingView, LayerGeometry
from mole.audit.scoring import Score, Truth, score
from mole.sources.bundled import fashion_mnist

CORES = ("orthogonal", "gaussian", "whitened")
CIFAR = mole.Normalisation((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261))
FASHION = mole.Normalisation((0.286,), (0.353,))

needs_cifar = pytest.mark.skipif(
    "MOLE_CIFAR10" not in os.environ, reason="MOLE_CIFAR10 does not name an .npz of CIFAR-10"
)


def cifar(part: str, count: int, start: int = 0) -> np.ndarray:
    """Plain CIFAR-10 images, (count, 3, 32, 32)."""
    with np.load(os.environ["MOLE_CIFAR10"]) as arrays:
        images = arrays[part][start : start + count]
    return CIFAR.apply(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def cifar_labels(part: str, count: int) -> np.ndarray:
    """Their classes."""
    with np.load(os.environ["MOLE_CIFAR10"]) as arrays:
        return arrays[part][:count].reshape(-1).astype(np.int64)


def fashion(part: str, count: int) -> np.ndarray:
    """Plain Fashion-MNIST images, (count, 1, 28, 28)."""
    return FASHION.apply(fashion_mnist()[part][:count, np.newaxis])


class Delivery:
    """A first layer, plain data and a key, and views of what the provider hands over."""

    def __init__(
        self,
        layer,
        plain,
        *,
        kappa=1,
        tile=None,
        core="orthogonal",
        sample=None,
        dtype="float32",
        seed=None,
        public=None,
    ):
        self.layer, self.plain, self.public = layer, plain, public
        self.key = mole.MorphKey.generate(
            layer.input_shape, kappa=kappa, tile=tile, core=core, sample=sample, insecure_seed=seed
        )
        self.order = self.key.channel_order(layer.channels)
        self._common = {
            "morphed": mole.morph(plain, self.key),
            "kappa": self.key.kappa,
            "layout": self.key.morphing.layout.name,
            "augmented": mole.augment(layer, self.key, dtype=dtype),
            "geometry": LayerGeometry.of(layer),
            "public": public,
        }

    @property
    def stolen(self) -> DeliveryView:
        return DeliveryView(**self._common)

    @property
    def developer(self) -> DeveloperView:
        return DeveloperView(**self._common, layer=self.layer)

    def injecting(self, known: np.ndarray) -> InjectingView:
        return InjectingView(
            **self._common, layer=self.layer, known=known, known_morphed=mole.morph(known, self.key)
        )

    def score(self, finding: Finding, normalisation: mole.Normalisation | None = None) -> Score:
        return score(finding, Truth(self.plain, normalisation, self.order))


def random_conv(rng, channels, input_shape, kernel=3, *, bias=False, **options) -> mole.FirstLayer:
    axes = len(input_shape) - 1
    sides = (kernel,) * axes if isinstance(kernel, int) else kernel
    weight = rng.normal(size=(channels, input_shape[0] // options.get("groups", 1), *sides))
    values = rng.normal(size=channels) if bias else None
    return mole.FirstLayer.conv(
        weight.astype(np.float32),
        None if values is None else values.astype(np.float32),
        input_shape=input_shape,
        **options,
    )


def seed_of(rng: np.random.Generator) -> bytes:
    """A known seed: small cores are refused without one."""
    return rng.bytes(32)
