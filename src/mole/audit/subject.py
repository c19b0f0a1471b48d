"""What is audited: everything that was handed out, and the truth to compare with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mole.attacks.tools.views import (
    DeliveryView,
    DeveloperView,
    InjectingView,
    LayerGeometry,
    MissingInputError,
    NotApplicableError,
    OutsiderView,
)
from mole.audit.scoring import Truth
from mole.exchange.encoding import Encoding, check_dtype
from mole.provider.keys import MorphKey
from mole.provider.verbs import augment
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array, Shape, block_size, roll, unroll
from mole.sources.bundled import bundled_images

SCORED = 256  # rows that attacks rebuild and the scorer compares; what a developer knows comes after them
FEWEST_SCORED = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """A delivery, or what a setting would deliver.

    Attributes:
        morphed: morphed samples, (n, *input_shape).
        kappa, layout: how they were morphed.
        layer: the first layer they were made for, if it was given.
        augmented: the augmented layer, if it was delivered.
        public: plain images of the same kind from elsewhere, or None.
        truth: what the attackers want to know, for the first rows or for all; None if there is none.
        facts: what to tell about it: rows, fingerprints, ...
        rows: how many rows there are in all; None if all are in `morphed`.
        private: whether the images are the provider's own, and not ones that everybody may see.
        warnings: what was wrong with what the audit was given.
    """

    morphed: Array
    kappa: int
    layout: str = "rows"
    layer: FirstLayer | None = None
    augmented: AugmentedLayer | None = None
    public: Array | None = None
    truth: Truth | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    rows: int | None = None
    private: bool = True

    @property
    def input_shape(self) -> Shape:
        """Shape of a sample."""
        return self.morphed.shape[1:]

    @property
    def scored(self) -> int:
        """How many rows are compared; what an injecting developer knows are others."""
        return min(SCORED, max(1, len(self.morphed) // 2))

    @property
    def pairs_wanted(self) -> int:
        """Known pairs that every attack with known pairs could use, and some to check with."""
        return -(-block_size(self.input_shape, self.kappa) // self.kappa) + 64

    def with_warning(self, *warnings: str) -> "Subject":
        """The same, with something more to tell."""
        return replace(self, warnings=(*self.warnings, *warnings))

    def view(self, kind: type[OutsiderView]) -> OutsiderView:
        """What an attacker of this kind has, and nothing else.

        Raises:
            NotApplicableError: if there is no such attacker here.
        """
        seen: dict[str, Any] = {
            "morphed": self.morphed, "kappa": self.kappa, "layout": self.layout, "public": self.public,
        }  # fmt: skip
        if kind is OutsiderView:
            return OutsiderView(**seen)
        if self.augmented is None:
            raise NotApplicableError("no augmented layer was delivered with this data")
        if self.layer is None:
            raise MissingInputError("the developer's first layer was not given: add --layer to test this")
        seen |= {"augmented": self.augmented, "geometry": LayerGeometry.of(self.layer)}
        if kind is DeliveryView:
            return DeliveryView(**seen)
        seen["layer"] = self.layer
        if kind is DeveloperView:
            return DeveloperView(**seen)
        return InjectingView(**seen | self._known())

    def _known(self) -> dict[str, Array]:
        if self.truth is None or len(self.truth.plain) <= self.scored:
            raise NotApplicableError("there are no images left to play the ones that the developer knows")
        known = slice(self.scored, min(len(self.truth.plain), self.scored + self.pairs_wanted))
        return {
            "morphed": self.morphed[: self.scored],
            "known": self.truth.plain[known].copy(),  # nothing leads from here to the rest of the truth
            "known_morphed": self.morphed[known],
        }


FEWEST, MOST, PUBLIC = 2048, 8192, 4096


def subject_of_setting(
    layer: FirstLayer, *, kappa: int = 1, core: str = "orthogonal", dtype: str = "float32"
) -> Subject:
    """Morph bundled images with a throw-away key, as `mole deliver` would morph yours."""
    side = block_size(layer.input_shape, kappa)
    wanted = min(MOST, max(FEWEST, SCORED + side // kappa + 128, 2 * side // kappa + 1))
    images = bundled_images(layer.input_shape, private=wanted, public=PUBLIC)
    plain, public = layer.plain(images.private), layer.plain(images.public)
    key = MorphKey.generate(
        layer.input_shape, kappa=kappa, core=core, sample=plain if core == "whitened" else None
    )
    morphed = _stored_and_read(unroll(key.morphing.morph(plain)), dtype)
    order = np.asarray(key.channel_order(layer.channels))
    return Subject(
        morphed=roll(morphed, layer.input_shape),
        kappa=kappa,
        layer=layer,
        augmented=augment(layer, key),
        public=public,
        truth=Truth(plain, layer.normalisation, order),
        private=False,
        facts={
            "audited": "a setting, with images that come with the software",
            "images": f"{len(plain)} ({images.origin})",
            "input shape": "x".join(map(str, layer.input_shape)),
            "first layer": f"{layer.kind}, {layer.channels} channels",
            "kappa": kappa,
            "core": core,
            "stored as": dtype,
        },
    )


def _stored_and_read(rows: Array, dtype: str) -> Array:
    encoding = Encoding.fit(check_dtype(dtype), rows)
    return encoding.decode(encoding.encode(rows))
