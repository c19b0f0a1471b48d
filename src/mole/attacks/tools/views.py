"""What each attacker has, and nothing more.

An attack is given one of these. No way leads from a view to the key or to the plain data: neither is in it,
and this part of the package cannot import the one that holds keys.

    OutsiderView      morphed data and its labels, public images of the same kind
      DeliveryView      the whole delivery: also the augmented layer
        DeveloperView     the receiver it was made for: also its own first layer
          InjectingView     also some plain images whose morphed rows it knows
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from mole.errors import MoleError, ShapeError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry as LayerGeometry  # noqa: PLC0414  (a part of views)
from mole.scheme.layouts import LAYOUTS, Indices, Layout
from mole.scheme.shapes import Array, Shape, block_size, unroll

Labels = npt.NDArray[np.int64]
KEPT = 0.1  # lengths that differ by less, as a share: the core seems to keep them


class NotApplicableError(MoleError):
    """An attack that cannot be tried on this view; the message says why."""


class MissingInputError(NotApplicableError):
    """An attack that could be tried if the auditor gave it what it needs; the message says what."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OutsiderView:
    """Somebody who comes by the morphed files alone.

    Attributes:
        morphed: morphed samples as delivered, (n, *input_shape).
        kappa, layout: how they were morphed; the manifest says so.
        public: plain images of the same kind from elsewhere, (m, *input_shape), or None.
        labels, public_labels: the classes of both, numbered alike; None where there are none.
        candidates: plain images of which the attacker asks whether they are among the morphed ones.
        elsewhere: morphed samples of another delivery, or of requests, under the same key.
        further, public_further: where these are crops, others from the same images, as many of each image,
            image by image; None elsewhere.
        blocks_of_whole: blocks of a whole sample, where these are crops; None where they are not.
    """

    morphed: Array
    kappa: int
    layout: str = "rows"
    blocks_of_whole: int | None = None
    further: Array | None = None
    public_further: Array | None = None
    public: Array | None = None
    labels: Labels | None = None
    public_labels: Labels | None = None
    candidates: Array | None = None
    elsewhere: Array | None = None

    def __post_init__(self) -> None:
        for labels, samples in ((self.labels, self.morphed), (self.public_labels, self.public)):
            if labels is not None and (samples is None or labels.shape != samples.shape[:1]):
                raise ShapeError("there is not one label for each sample: give as many labels as samples")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                if value.dtype.kind == "f" and value.shape[1:] != self.morphed.shape[1:]:
                    raise ShapeError(f"{field.name} images differ in shape from the morphed samples")
                kept = value.view()
                kept.flags.writeable = False
                object.__setattr__(self, field.name, kept)
        block_size(self.input_shape, self.kappa)

    @property
    def input_shape(self) -> Shape:
        """Shape of a sample."""
        return self.morphed.shape[1:]

    @property
    def block(self) -> int:
        """Side of the core: the paper's q."""
        return block_size(self.input_shape, self.kappa)

    @property
    def images_for_core(self) -> int:
        """Known images that have as many blocks as the core has rows, and so determine it."""
        return -(-self.block // (self.blocks_of_whole or self.kappa))

    @property
    def cut(self) -> Layout:
        """How samples are cut into blocks.

        Raises:
            NotApplicableError: if the data was morphed in a layout that this version does not know.
        """
        if self.layout not in LAYOUTS:
            raise NotApplicableError(
                f"the data was morphed in the layout {self.layout!r}, and this version does not know where "
                "its blocks lie"
            )
        return Layout.of(self.layout, self.input_shape, self.kappa)

    def similar(self, fewest: int = 0, purpose: str = "") -> Array:
        """Public images of the same kind, where there are as many as a purpose takes, and morphed ones too.

        Raises:
            MissingInputError: if there are none.
            NotApplicableError: if there are too few of either.
        """
        if self.public is None:
            raise MissingInputError("there are no public images to compare the morphed data with")
        found = min(len(self.public), len(self.morphed))
        if found < fewest:
            raise NotApplicableError(
                f"{found} images are too few {purpose}: it takes {fewest} or more of each, morphed and "
                "public"
            )
        return self.public

    @property
    def statistical(self) -> "OutsiderView":
        """The same with all crops, for attacks that compare statistics and rebuild the first rows."""
        if self.further is None or self.public is None or self.public_further is None:
            return self
        return OutsiderView(
            morphed=np.concatenate([self.morphed, self.further]),
            public=np.concatenate([self.public, self.public_further]),
            labels=_repeated(self.labels, len(self.further)),
            public_labels=_repeated(self.public_labels, len(self.public_further)),
            kappa=self.kappa,
            layout=self.layout,
            blocks_of_whole=self.blocks_of_whole,
        )

    def keeps_lengths(self, at: Sequence[float] = (0.25, 0.5, 0.75)) -> bool:
        """Whether the core seems to keep lengths: these quantiles are about those of public images."""
        if self.public is None:
            return False
        public, morphed = (
            np.quantile(np.linalg.norm(unroll(some).astype(np.float64), axis=1), at)
            for some in (self.public, self.morphed)
        )
        return bool(np.abs(morphed / np.maximum(public, 1e-12) - 1).max() < KEPT)

    def to_blocks(self, samples: Array) -> Array:
        """Samples as blocks, in at least 32 bits: (n, *input_shape) to (n, kappa, q)."""
        wide = samples.astype(np.float32) if samples.dtype.itemsize < 4 else samples
        return self.cut.to_blocks(wide).reshape(len(samples), self.kappa, self.block)

    def to_samples(self, blocks: Array) -> Array:
        """Undo `to_blocks`: (n, kappa, q) to (n, *input_shape)."""
        return self.cut.to_rows(blocks).reshape(len(blocks), *self.input_shape)


def _repeated(labels: Labels | None, further: int) -> Labels | None:
    """Labels of samples, and of so many further crops of them."""
    if labels is None:
        return None
    return np.concatenate([labels, np.repeat(labels, further // max(1, len(labels)))])


@dataclass(frozen=True, eq=False, kw_only=True)
class DeliveryView(OutsiderView):
    """Somebody who comes by a whole delivery, and knows the network's architecture but not its weights."""

    augmented: AugmentedLayer
    geometry: LayerGeometry

    def features(self, count: int | None = None) -> Array:
        """Features of the first morphed samples, as the augmented layer gives them."""
        return self.augmented.features(self.morphed[:count])


@dataclass(frozen=True, eq=False, kw_only=True)
class DeveloperView(DeliveryView):
    """The model developer, who made the first layer.

    An order of channels says that channel c of the augmented layer is channel order[c] of the first layer.
    """

    layer: FirstLayer

    def in_order(self, delivered: Array, order: Indices) -> Array:
        """Numbers by delivered channel, (n, channels, ...), put in the first layer's order."""
        ordered = np.empty_like(delivered)
        ordered[:, order] = delivered
        return ordered

    def features_in_order(self, order: Indices, count: int | None = None) -> Array:
        """Features of the first morphed samples, as the first layer itself would give them."""
        return self.in_order(self.features(count), order)

    def rows_in_order(self, order: Indices, rows: Indices) -> Array:
        """Some rows of the augmented layer in 64 bits, as they would stand without the channel shuffle."""
        delivered = self.augmented.rows(rows).astype(np.float64)
        by_channel = delivered.reshape(len(rows), len(order), -1)
        return self.in_order(by_channel, order).reshape(len(rows), -1)


@dataclass(frozen=True, eq=False, kw_only=True)
class InjectingView(DeveloperView):
    """A developer who got images of its own into the data, and knows which rows they became."""

    known: Array
    known_morphed: Array
