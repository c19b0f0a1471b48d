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

    def output_grid(self, sides: Shape) -> Shape:
        """Output positions along each axis, for an input with so many.

        >>> LayerGeometry((7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1)).output_grid((224, 32))
        (112, 16)
        """
        return tuple(
            (side + before + after - dilation * (kernel - 1) - 1) // stride + 1
            for side, (before, after), dilation, kernel, stride in zip(
                sides, self.padding, self.dilation, self.kernel, self.stride, strict=True
            )
        )

    def layer(self, weight: Array, bias: Array | None, input_shape: Shape) -> FirstLayer:
        """A layer of this geometry with weights that somebody worked out, groups written out."""
        return FirstLayer(weight, bias, input_shape, self.stride, self.padding, self.dilation)
