"""Feature transmission: the provider runs the developer's first layer, adds noise, and sends the features.

That is the third method of the paper's comparison. Features are clipped first, to the length that is usual
among public images, so that noise of any size has a certificate in bits as protected rows have; noise is
said as a multiple of the features' own root mean square. The developer knows the layer: it undoes it by
least squares, or looks for the candidate whose features are nearest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mole.attacks.tools.attack import Finding
from mole.attacks.tools.deconvolution import Deconvolution
from mole.audit.scoring import Truth, score
from mole.experiments.attacked_deliveries import AMONG
from mole.experiments.channel_scores import Features, identified
from mole.experiments.experiment import Result
from mole.protection import Certificate
from mole.scheme.convolution import features_of
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, element_count
from mole.sources.source import Labels

AT_ONCE = 250  # images
CANDIDATES = 1000


@dataclass(frozen=True, eq=False)
class Transmission:
    """How features are sent.

    Attributes:
        layer: the developer's first layer.
        length: to which features are clipped; sent, they have a length of at most 1.
        noise: in each feature, over the features' root mean square; None for no noise.
    """

    layer: FirstLayer
    length: float
    noise: float | None

    @classmethod
    def fitted(cls, layer: FirstLayer, public: Array, noise: float | None) -> "Transmission":
        """With the length that is in the middle among public images."""
        lengths = [np.linalg.norm(rows, axis=1) for rows in _features(layer, public)]
        return cls(layer, float(np.median(np.concatenate(lengths))), noise)

    @property
    def values(self) -> int:
        """Numbers of an image that are sent: d."""
        return element_count(self.layer.output_shape)

    @cached_property
    def certificate(self) -> Certificate | None:
        """What holds of each image that is sent; None without noise."""
        if self.noise is None:
            return None
        return Certificate(self.values, 1.0, self.noise / np.sqrt(self.values))

    def sent(self, plain: Array) -> Array:
        """What leaves: feature maps with noise, (n, *output_shape), in 32 bits."""
        shape = self.layer.output_shape
        parts = [
            rows.noisy(self.certificate).rows.astype(np.float32).reshape(-1, *shape)
            for rows in self._clipped(plain)
        ]
        return np.concatenate(parts)

    def attacked(self, plain: Array, look: Normalisation | None) -> Result:
        """What a developer gets of some images: the nearest candidate, and pictures."""
        plain = plain[:CANDIDATES]
        clean = np.concatenate([rows.rows for rows in self._clipped(plain)])
        sent = self.sent(plain)
        nobody: Labels = np.zeros(len(plain), np.int64)
        noisy = Features(sent.reshape(len(sent), -1).astype(np.float64), nobody)
        rebuilt = Deconvolution.of(self.layer)(sent[:AMONG].astype(np.float64) * self.length)
        found = score(Finding("undone", images=rebuilt), Truth(plain[:AMONG], look))
        return {
            "nearest": round(identified(Features(clean, nobody), noisy, self.certificate, len(plain)), 4),
            "candidates": len(plain),
            "rebuilt": round(found.reidentified or 0.0, 4),
            "among": found.among,
            "psnr": round(found.psnr or 0.0, 2),
            "correlation": round(found.correlation or 0.0, 3),
        }

    def _clipped(self, plain: Array) -> Iterator[Features]:
        nobody: Labels = np.zeros(AT_ONCE, np.int64)
        for rows in _features(self.layer, plain):
            yield Features.of(rows / self.length, nobody[: len(rows)])


def _features(layer: FirstLayer, plain: Array) -> Iterator[Array]:
    """Features as rows, (some, d), a few images at a time."""
    for start in range(0, len(plain), AT_ONCE):
        some = plain[start : start + AT_ONCE]
        yield features_of(layer, some).reshape(len(some), -1)
