"""What each attacker has, and nothing more.

An attack is handed one of these. There is no way from a view to the key or to the plain data: they are not
in it, and this part of the package cannot import the one that holds keys.

    OutsiderView      morphed data, public images of the same kind
      DeliveryView      the whole delivery: also the augmented layer
        DeveloperView     the receiver it was made for: also its own first layer
          InjectingView     also some plain images whose morphed rows it knows
"""

from dataclasses import dataclass, fields

import numpy as np

from mole.errors import ShapeError
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer, Padding
from mole.scheme.shapes import Array, Shape, block_size


@dataclass(frozen=True)
class LayerGeometry:
    """A first layer without its weights: what everybody who knows the network's architecture knows."""

    kernel: Shape
    stride: Shape
    padding: Padding
    dilation: Shape
    groups: int = 1

    @classmethod
    def of(cls, layer: FirstLayer) -> "LayerGeometry":
        """The geometry of a layer."""
        return cls(layer.kernel, layer.stride, layer.padding, layer.dilation, layer.groups)

    def layer(self, weight: Array, bias: Array | None, input_shape: Shape) -> FirstLayer:
        """A layer of this geometry with a weight that somebody worked out, groups written out."""
        return FirstLayer(weight, bias, input_shape, self.stride, self.padding, self.dilation)


@dataclass(frozen=True, eq=False, kw_only=True)
class OutsiderView:
    """Who comes by the morphed files alone.

    Attributes:
        morphed: morphed samples as delivered, (n, *input_shape).
        kappa, layout: how they were morphed; the manifest says so.
        public: plain images of the same kind from elsewhere, (m, *input_shape), or None.
    """

    morphed: Array
    kappa: int
    layout: str = "rows"
    public: Array | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                if value.shape[1:] != self.morphed.shape[1:]:
                    raise ShapeError(f"{field.name} images are not of the morphed samples' shape")
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


@dataclass(frozen=True, eq=False, kw_only=True)
class DeliveryView(OutsiderView):
    """Who comes by a whole delivery, and knows the network's architecture but not its weights."""

    augmented: AugmentedLayer
    geometry: LayerGeometry

    def features(self, count: int | None = None) -> Array:
        """Features of the first morphed samples, as the augmented layer gives them."""
        return self.augmented.features(self.morphed[:count])


@dataclass(frozen=True, eq=False, kw_only=True)
class DeveloperView(DeliveryView):
    """The model developer: it made the first layer."""

    layer: FirstLayer


@dataclass(frozen=True, eq=False, kw_only=True)
class InjectingView(DeveloperView):
    """A developer who got some images of its own into the data, and knows which rows they became."""

    known: Array
    known_morphed: Array
