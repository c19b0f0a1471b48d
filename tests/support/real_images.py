"""Real images for the attacks: the Fashion-MNIST in the package, and CIFAR-10 where there is one."""

import os
from functools import cache

import numpy as np
import pytest

import mole
from mole.sources.bundled import fashion_mnist

CIFAR10 = os.environ.get("MOLE_CIFAR10")
needs_cifar10 = pytest.mark.skipif(
    CIFAR10 is None,
    reason="MOLE_CIFAR10 does not name an .npz with CIFAR-10 (x_train, uint8, n x 32 x 32 x 3)",
)


@cache
def fashion() -> tuple[np.ndarray, np.ndarray]:
    """Private and public images, (3000, 1, 28, 28) each, normalised."""
    images, look = fashion_mnist(), mole.Normalisation((0.286,), (0.353,))
    return look.apply(images["x_private"][:, None]), look.apply(images["x_public"][:, None])


@cache
def cifar10(count: int = 10_000) -> tuple[np.ndarray, np.ndarray]:
    """Private and public images, (count, 3, 32, 32) each, normalised."""
    with np.load(str(CIFAR10)) as data:
        images = data["x_train"][: 2 * count].transpose(0, 3, 1, 2)
    plain = mole.Normalisation((0.491, 0.482, 0.447), (0.247, 0.243, 0.262)).apply(images)
    return plain[:count], plain[count:]


def morphed(private: np.ndarray, core: str, kappa: int = 1, seed: int = 1) -> np.ndarray:
    """What leaves the provider's house; a whitened core has learned from the very images that leave."""
    key = mole.MorphKey.generate(
        private.shape[1:], kappa=kappa, core=core,
        sample=private if core == "whitened" else None, insecure_seed=bytes([seed] * 32),
    )  # fmt: skip
    return mole.morph(private, key)
