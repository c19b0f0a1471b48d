"""A first layer without its weights."""

from dataclasses import dataclass

from mole.scheme.first_layer import FirstLayer, Padding
from mole.scheme.shapes import Array, Shape


@dataclass(frozen=True)
class LayerGeometry:
    """A first layer without its weights: what anybody knows who knows the network's architecture."""

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
        """A layer of this geometry with weights that somebody worked out, groups written out."""
        return FirstLayer(weight, bias, input_shape, self.stride, self.padding, self.dilation)
