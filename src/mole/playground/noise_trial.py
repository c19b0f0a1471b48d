"""One picture as a protected row: front, clip, noise; and what the best that we know of make of it.

The front here is a plain one that needs no network: the strongest principal components of public images,
half-whitened and of length 1, as `mole front make` ends with. The certificate holds for any front.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from mole.attacks.nearest_features import likeliest
from mole.attacks.pca_matching import Components, leading_components
from mole.attacks.tools.attack import Finding
from mole.attacks.tools.linear_on_noise import LinearOnNoise
from mole.audit.scoring import Score, Truth, score
from mole.playground.choices import BITS
from mole.playground.stock import Picture, kind_of
from mole.protection.certificate import Certificate
from mole.protection.channel import FreshNoise, clip, release
from mole.protection.known_channel import KnownChannel
from mole.scheme.shapes import Array, unroll

FEATURES = 64
CANDIDATES = 1000
CLIP = 1.0


@dataclass(frozen=True, eq=False)
class PlainFront:
    """Images of one kind to features, and what public images become.

    Attributes:
        components: of public images.
        public: their features without noise, (n, d).
    """

    components: Components
    public: npt.NDArray[np.float64]

    @classmethod
    def fit(cls, public: Array) -> "PlainFront":
        """A front for images like these, (n, *shape)."""
        components = leading_components(unroll(public), FEATURES, np.random.default_rng(0))
        return cls(components, _features(components, public))

    def __call__(self, images: Array) -> npt.NDArray[np.float64]:
        """Features, of the length that the certificate counts on at most: (n, *shape) to (n, d)."""
        return _features(self.components, images)


def _features(components: Components, images: Array) -> npt.NDArray[np.float64]:
    along = (unroll(images).astype(np.float64) - components.mean) @ components.directions.T
    half = along / components.variances**0.25
    return clip(half / np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-12), CLIP)[0]


@cache
def front_of(kind: str) -> PlainFront:
    """The front of a kind of pictures."""
    return PlainFront.fit(kind_of(kind).public)


@cache
def certificate_of(bits: float) -> Certificate:
    """The certificate of a row that tells so many bits at most."""
    return Certificate.for_bits(bits, features=FEATURES, clip=CLIP)


@lru_cache(maxsize=len(BITS))
def most_identified(bits: float) -> float:
    """How often anybody picks the right one of the candidates, at most."""
    return certificate_of(bits).identification(CANDIDATES)


@dataclass(frozen=True, eq=False)
class NoiseTrial:
    """A picture as it would leave, and what was made of it.

    Attributes:
        certificate: what holds for everybody.
        row: the noisy features of the picture, (d,).
        rebuilt: what the decoder draws: pixels between 0 and 1, (channels, height, width).
        score: how good that is.
        mean_score: how good it is to draw the mean of public images, whatever the row.
        picked: the pixels of the candidate that the row is likeliest of.
        is_right: whether that is the picture.
        share: of all candidates, how many were picked for their own row.
        most_share: how many that can be at most.
    """

    certificate: Certificate
    row: npt.NDArray[np.float64]
    rebuilt: Array
    score: Score
    mean_score: Score
    picked: Array
    is_right: bool
    share: float
    most_share: float

    @classmethod
    def of(cls, picture: Picture, bits: float) -> "NoiseTrial":
        """Protect a picture, with fresh noise, and attack it."""
        kind, front, certificate = kind_of(picture.kind), front_of(picture.kind), certificate_of(bits)
        truth = Truth(picture.plain, kind.layer.normalisation)
        candidates = np.concatenate([picture.plain, kind.public[: CANDIDATES - 1]])
        features = front(candidates)
        rows = release(features, certificate, FreshNoise())
        channel = KnownChannel(certificate)
        decoder = LinearOnNoise.fit(channel.expected(front.public), unroll(kind.public), channel.sigma)
        drawn = np.asarray(decoder(rows[:1]).reshape(picture.plain.shape), np.float32)
        picked = likeliest(rows, features, channel)
        return cls(
            certificate=certificate,
            row=rows[0],
            rebuilt=truth.pixels(drawn)[0],
            score=score(Finding("", images=drawn), truth),
            mean_score=score(Finding("", images=kind.mean), truth),
            picked=truth.pixels(candidates[picked[:1]])[0],
            is_right=bool(picked[0] == 0),
            share=float((picked == np.arange(CANDIDATES)).mean()),
            most_share=most_identified(bits),
        )
