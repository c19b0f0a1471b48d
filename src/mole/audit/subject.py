"""What is audited: everything that was handed over, and the truth to compare with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mole.attacks.tools.views import (
    DeliveryView,
    DeveloperView,
    InjectingView,
    Labels,
    LayerGeometry,
    MissingInputError,
    NotApplicableError,
    OutsiderView,
)
from mole.audit.crop import Crop
from mole.audit.scoring import Truth
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, Shape, block_size

SCORED = 256  # rows that attacks rebuild and the scorer compares; those that a developer knows come after
FEWEST_SCORED = 8
FEWEST_IMAGES = 2 * FEWEST_SCORED  # half of them may be known to the attacker


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """A delivery, or what a setting would deliver.

    Attributes:
        morphed: morphed samples, (n, *input_shape).
        kappa, layout: how they were morphed.
        layer: the first layer they were made for, if it was given.
        is_other_layer: whether another one was given instead.
        augmented: the augmented layer, if it was delivered.
        public: plain images of the same kind from elsewhere, or None.
        labels, public_labels: the classes of both, numbered alike; None where there are none.
        candidates: images of which an attacker asks whether they were delivered, or None.
        elsewhere: morphed samples of another delivery under the same key, or None.
        further, public_further: where samples are crops, others of the same images, morphed and public.
        truth: what the attackers want to know, for the first rows or for all; None if there is none.
        facts: what to say about it: rows, fingerprints, ...
        warnings: what was wrong with what the audit was given.
        rows: how many rows there are in all; None if all are in `morphed`.
        core: which kind of core morphed them; None where only the key could tell.
        sealed: whether they lie encrypted for their receiver.
        private: whether the images are the provider's own, rather than ones that anybody may see.
        crop: which part of each sample all of this is about, where whole ones are too large for attacks ...
        whole: ... and the same subject with whole samples, of which it has a few; None elsewhere.
    """

    morphed: Array
    kappa: int
    layout: str = "rows"
    layer: FirstLayer | None = None
    is_other_layer: bool = False
    augmented: AugmentedLayer | None = None
    public: Array | None = None
    labels: Labels | None = None
    public_labels: Labels | None = None
    candidates: Array | None = None
    elsewhere: Array | None = None
    further: Array | None = None
    public_further: Array | None = None
    truth: Truth | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    rows: int | None = None
    core: str | None = None
    sealed: bool = False
    private: bool = True
    crop: Crop | None = None
    whole: "Subject | None" = None

    def __post_init__(self) -> None:
        """Add the axis of channels that sound may come without: attacks and pictures count on it."""
        axes = 0 if self.layer is None else len(self.layer.kernel)
        if not axes:
            return
        for name in ("morphed", "public", "candidates", "elsewhere"):
            samples = getattr(self, name)
            if samples is not None:
                object.__setattr__(self, name, _with_channels(samples, axes))
        for name in ("layer", "augmented"):
            part = getattr(self, name)
            if part is not None and len(part.input_shape) == axes:
                object.__setattr__(self, name, replace(part, input_shape=(1, *part.input_shape)))
        if self.truth is not None:
            known = {name: getattr(self.truth, name) for name in ("plain", "public", "elsewhere")}
            given: dict[str, Any] = {
                name: _with_channels(some, axes) for name, some in known.items() if some is not None
            }
            object.__setattr__(self, "truth", replace(self.truth, **given))

    @property
    def input_shape(self) -> Shape:
        """Shape of a sample."""
        return self.morphed.shape[1:]

    @property
    def uncut(self) -> "Subject":
        """The subject with whole samples: what its costs and the published figures are about."""
        return self.whole or self

    @property
    def scored(self) -> int:
        """How many rows are compared; an injecting developer knows others."""
        return min(SCORED, max(1, len(self.morphed) // 2))

    def view(self, kind: type[OutsiderView]) -> OutsiderView:
        """What an attacker of this kind has, and nothing else.

        Raises:
            NotApplicableError: if there is no such attacker here.
            MissingInputError: if there could be one, and something was not given.
        """
        seen: dict[str, Any] = {
            "morphed": self.morphed, "kappa": self.kappa, "layout": self.layout, "public": self.public,
            "labels": self.labels, "public_labels": self.public_labels,
            "candidates": self.candidates, "elsewhere": self.elsewhere,
            "further": self.further, "public_further": self.public_further,
            "blocks_of_whole": None if self.crop is None else self.crop.whole.kappa,
        }  # fmt: skip
        if kind is OutsiderView:
            return OutsiderView(**seen)
        if self.augmented is None:
            raise NotApplicableError("no augmented layer was delivered with this data")
        if self.layer is None:
            given = "another first layer than the delivery's was given: give that one to test this"
            missing = "the developer's first layer was not given: give it to test this"
            raise MissingInputError(given if self.is_other_layer else missing)
        seen |= {"augmented": self.augmented, "geometry": LayerGeometry.of(self.layer)}
        if kind is DeliveryView:
            return DeliveryView(**seen)
        seen["layer"] = self.layer
        if kind is DeveloperView:
            return DeveloperView(**seen)
        return InjectingView(**seen | self._known())

    def _known(self) -> dict[str, Any]:
        if self.truth is None or len(self.truth.plain) <= self.scored:
            raise NotApplicableError("there are no images left to play the ones that the developer knows")
        wanted = self.scored + pairs_wanted(self.input_shape, self.kappa)
        known = slice(self.scored, min(len(self.truth.plain), wanted))
        return {
            "morphed": self.morphed[: self.scored],
            "labels": None if self.labels is None else self.labels[: self.scored],
            "further": None,  # statistics are not what this attacker needs
            "known": self.truth.plain[known].copy(),  # nothing leads from here to the rest of the truth
            "known_morphed": self.morphed[known],
        }


def _with_channels(samples: Array, axes: int) -> Array:
    return samples[:, np.newaxis] if samples.ndim == axes + 1 else samples


def pairs_wanted(input_shape: Shape, kappa: int) -> int:
    """Known pairs enough for every attack that uses them, and some to check with."""
    return -(-block_size(input_shape, kappa) // kappa) + 64
