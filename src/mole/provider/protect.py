"""What a provider asks for in a protected delivery, and the terms that this comes to.

deliver("photos", layer, key, "delivery", protect=Protect("front.onnx", bits=1.0, budget=4.0))
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from mole.errors import ParameterError
from mole.foreign_text import shown
from mole.protection.certificate import Certificate
from mole.protection.front_file import Front, read_front
from mole.protection.terms import Protection
from mole.provider.engines import EngineName
from mole.provider.keys import MorphKey
from mole.quantities import joined
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import shape_text

CORE = "orthogonal"

Amount = float | Mapping[str, float]
"""For all splits, or for each by its name."""


@dataclass(frozen=True)
class Protect:
    """A wish for protection: exactly one of bits, sigma and epsilon says how strong it is.

    Attributes:
        front: the developer's front: an ONNX file by `mole.torch.make_front` or `mole front make`.
        bits: what each row may tell about its image, at most.
        sigma: standard deviation of the noise.
        epsilon: of differential privacy between any two images.
        clip: the largest length that the features of an image can have.
        budget: bits that any one image may give away in all deliveries under the key, which later ones keep
            to as well; None for the budget that the key has, if it has one.
    """

    front: str | PathLike[str]
    bits: Amount | None = None
    sigma: Amount | None = None
    epsilon: Amount | None = None
    clip: float = 1.0
    budget: float | None = None

    def __post_init__(self) -> None:
        if sum(amount is not None for amount in (self.bits, self.sigma, self.epsilon)) != 1:
            raise ParameterError(
                "a protected delivery says how much each image may tell, in one way: give bits, sigma or "
                "epsilon"
            )
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise ParameterError(f"a budget is a positive number of bits, not {self.budget}")

    def front_for(self, layer: FirstLayer, engine: EngineName) -> Front:
        """The front, checked, and that it goes with the first layer and the engine.

        Raises:
            FileError: if its file is no front.
            ParameterError: if it gives something else than the layer takes.
        """
        if engine != "local":
            raise ParameterError("a protected delivery is made on this machine", advice={"engine": "local"})
        front = read_front(Path(self.front))
        _check_fit(front, layer, self.front)
        return front

    def terms(self, front: Front, splits: Iterable[str]) -> Protection:
        """The certificate of each split.

        Raises:
            ParameterError: if an amount is missing for a split, is for none, or cannot be.
        """
        names = list(splits)
        named = self.bits or self.sigma or self.epsilon
        if isinstance(named, Mapping) and set(named) != set(names):
            raise ParameterError(
                f"amounts are for {joined([shown(name) for name in named])}, and the data has "
                f"{joined([shown(name) for name in names])}: give one for each split, or one for all"
            )
        return Protection(front.digest, {name: self._certificate(front, name) for name in names})

    def _certificate(self, front: Front, split: str) -> Certificate:
        features = front.dimensions
        if self.bits is not None:
            return Certificate.for_bits(_of(self.bits, split), features=features, clip=self.clip)
        if self.sigma is not None:
            return Certificate.for_sigma(_of(self.sigma, split), features=features, clip=self.clip)
        assert self.epsilon is not None  # noqa: S101  (one of the three is there)
        return Certificate.for_epsilon(_of(self.epsilon, split), features=features, clip=self.clip)


def check_core(key: MorphKey) -> None:
    """Refuse a key whose core depends on images.

    Raises:
        ParameterError: a whitened core would carry the covariance of images into the augmented layer.
    """
    if key.core != CORE:
        raise ParameterError(
            f"a protected delivery needs a key with an {CORE} core, and this one's is {key.core}: make "
            "one without data"
        )


def _check_fit(front: Front, layer: FirstLayer, path: str | PathLike[str]) -> None:
    """Refuse a first layer that does not take what the front gives.

    Raises:
        ParameterError: with both shapes.
    """
    if front.features != layer.input_shape:
        raise ParameterError(
            f"{path} gives {shape_text(front.features)} features and the first layer takes "
            f"{shape_text(layer.input_shape)}: give the front and the first layer that belong together"
        )
    if layer.normalisation is not None:
        raise ParameterError(
            "the first layer asks for normalised pixels, and a protected delivery has features: ask the "
            "developer for the first layer of a network on features"
        )


def _of(amount: Amount, split: str) -> float:
    return float(amount[split] if isinstance(amount, Mapping) else amount)
