"""What whoever attacks a protected delivery has: rows with the morphing undone, and images of its own.

The receiver can undo the morphing, and so can the holder of the key; nobody can undo the noise. So the
worst is assumed: every attacker has the noisy features themselves, and knows front, clip and noise. What it
may also have are candidates, of which it knows the features without noise, and similar images.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.views import MissingInputError
from mole.errors import ShapeError
from mole.scheme.shapes import Array

Lists = Mapping[int, npt.NDArray[np.intp]]
"""By how many candidates there are: which those of each row are, (rows, candidates)."""


@dataclass(frozen=True)
class Draws:
    """Chance of an attacker's own."""

    rng: np.random.Generator

    def normals(self, count: int) -> npt.NDArray[np.float64]:
        """Standard normal numbers."""
        return self.rng.standard_normal(count)

    def uniforms(self, count: int) -> npt.NDArray[np.float64]:
        """Numbers from 0 to 1."""
        return self.rng.random(count)


class Channel(Protocol):
    """What becomes of features before they leave; everybody knows it, but for the draws."""

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise in each number."""

    def noisy(self, features: Array, draws: Draws) -> Array:
        """Features, (n, d), as they would have been delivered, by draws of the attacker's own."""

    def expected(self, features: Array) -> Array:
        """What rows of these features, (n, d), are on average."""

    def information(self, rows: Array, features: Array) -> Array:
        """Of rows, (n, d), about features, (m, d), if noise were Gaussian: logarithms, (n, m)."""

    def own_information(self, rows: Array, features: Array) -> Array:
        """The same of each row about features of its own: (..., d) and (..., d) to (...)."""

    def told(self, information: Array, features: Array) -> Array:
        """How much likelier rows are of features than of none, from what it would be for Gaussian noise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProtectedView:
    """Somebody who reads protected rows.

    Attributes:
        rows: noisy features, (n, d).
        channel: what became of features before they left.
        candidates: features without noise of images that the attacker has, (m, d), or None.
        lists: for the first rows, lists of candidates of which one is behind the row.
        row_labels: the labels that left with these rows, or None ...
        candidate_labels: ... and those of the candidates, (m,).
        pairs: for pairs of rows, by their numbers, (how many, 2): the two images behind them are known ...
        pair_features: ... with their features, (how many, 2, d), and not which is which.
        asked: features of images of which it is asked whether they are among ...
        asked_rows: ... these rows, (some, d): all but those of half of the images; None for no question.
        public: similar images from elsewhere, (m, *shape), or None ...
        public_features: ... and their features without noise, (m, d).
        public_has: by property: which of them have it.
        rebuilt: of how many rows the images are asked for.
    """

    rows: Array
    channel: Channel
    candidates: Array | None = None
    lists: Lists = field(default_factory=dict)
    row_labels: npt.NDArray[np.int64] | None = None
    candidate_labels: npt.NDArray[np.int64] | None = None
    pairs: npt.NDArray[np.intp] | None = None
    pair_features: Array | None = None
    asked: Array | None = None
    asked_rows: Array | None = None
    public: Array | None = None
    public_features: Array | None = None
    public_has: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    rebuilt: int = 0

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                kept = value.view()
                kept.flags.writeable = False
                object.__setattr__(self, part.name, kept)
        for name in ("candidates", "pair_features", "asked", "asked_rows", "public_features"):
            features = getattr(self, name)
            if features is not None and features.shape[-1] != self.features:
                raise ShapeError(f"{name} have {features.shape[-1]} numbers, and rows have {self.features}")

    @property
    def features(self) -> int:
        """How many numbers a row has: d."""
        return int(self.rows.shape[1])

    def fitting(self, choices: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_] | None:
        """Which candidates of lists, (n, how many), have their row's label; None where none are known."""
        if self.row_labels is None or self.candidate_labels is None:
            return None
        fits = self.candidate_labels[choices] == self.row_labels[: len(choices), np.newaxis]
        return np.asarray(fits, np.bool_)

    def similar(self, fewest: int) -> tuple[Array, Array]:
        """Similar images and their features.

        Raises:
            MissingInputError: if there are none, or too few to learn from.
        """
        if self.public is None or self.public_features is None or len(self.public) < fewest:
            raise MissingInputError(
                f"this attacker learns from public images of the same kind, at least {fewest} of them: "
                "give some to test this"
            )
        return self.public, self.public_features
