"""The augmented layer: M^-1 C with shuffled channels (paper, section 3.3), as the developer gets it.

`mole.scheme.augmenting` builds it. In the layout `tiles` it is a convolution (`mole.scheme.tile_kernel`);
in `rows` it is a matrix, or two factors of one (`mole.scheme.factored`).
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from mole.errors import ParameterError, ShapeError
from mole.limits import MAX_ELEMENTS, MAX_FEATURES
from mole.quantities import size_text
from mole.scheme.convolution import add_bias
from mole.scheme.factored import FactoredMatrix, LayerForm
from mole.scheme.filling import check_plain_shape
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import Indices, Layout, LayoutName, RowsLayout, TilesLayout
from mole.scheme.linear_parts import DenseMatrix, LinearPart
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import (
    Array,
    FloatType,
    Shape,
    check_floats,
    check_shape,
    element_count,
    rows_of,
    shape_text,
)
from mole.scheme.tile_kernel import TileKernel

LayerDtype = Literal["float32", "float16"]
LAYER_DTYPES: tuple[LayerDtype, ...] = get_args(LayerDtype)
STORED_DTYPES = (*LAYER_DTYPES, "float64")  # what a layer file may hold; 64 bits are for experiments
FINGERPRINT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, eq=False)
class AugmentedLayer:
    """What the developer puts in place of its first layer.

    Attributes:
        weight: its numbers. In the layout `rows` the paper's C^ac, (input elements, output elements), or
            the basis of its factors, (input elements, positions x components); in `tiles` the kernel of
            a convolution over tiles.
        bias: the first layer's bias in the shuffled order, (channels,), or None.
        input_shape: shape of a morphed sample, the same as a plain one's unless zeros fill its tiles.
        output_shape: shape of its features, (channels, *grid), the same as the first layer's.
        kappa, layout: how the data was morphed.
        key_fingerprint: names the key, and says nothing about it.
        normalisation: what the provider applied before morphing, if the first layer asked for it.
        geometry: kernel, stride and so on of the first layer; None in files from before version 0.5.
        plain_shape: shape of a plain sample, where tiles had to be filled; None where it is `input_shape`.
        mixing: the second factor, (positions, components, channels); None where there is only one.
    """

    weight: Array
    bias: Array | None
    input_shape: Shape
    output_shape: Shape
    kappa: int
    layout: LayoutName
    key_fingerprint: str
    normalisation: Normalisation | None = None
    geometry: LayerGeometry | None = None
    plain_shape: Shape | None = None
    mixing: Array | None = None

    def __post_init__(self) -> None:
        for name, most in (("input_shape", MAX_ELEMENTS), ("output_shape", MAX_FEATURES)):
            object.__setattr__(self, name, check_shape(getattr(self, name), most))
        layout = Layout.of(self.layout, self.input_shape, self.kappa)
        object.__setattr__(self, "plain_shape", check_plain_shape(self.plain_shape, layout))
        _ = self.linear  # refuses a kappa, a layout or a weight that cannot be
        if self.bias is not None and self.bias.shape != self.output_shape[:1]:
            raise ShapeError(f"a bias of shape {self.bias.shape} does not fit {self.output_shape}")
        axes = len(self.output_shape) - 1
        if self.geometry is not None and len(self.geometry.kernel) != axes:
            raise ShapeError(
                f"a kernel of {len(self.geometry.kernel)} axes does not fit {self.output_shape}"
            )
        if axes and len(self.input_shape) not in (axes, axes + 1):
            raise ShapeError(
                f"an augmented layer does not lead from {self.input_shape} to {self.output_shape}"
            )
        if not FINGERPRINT.fullmatch(self.key_fingerprint):
            raise ParameterError("a key's fingerprint has 32 hexadecimal digits, and this one does not")

    def __repr__(self) -> str:
        ways = " -> ".join(map(shape_text, (self.input_shape, self.output_shape)))
        return f"AugmentedLayer({ways}, {self.dtype}, {size_text(self.nbytes)}, key {self.key_fingerprint})"

    @property
    def network_shape(self) -> Shape:
        """Shape of the samples that the developer's network was built for."""
        return self.plain_shape or self.input_shape

    @cached_property
    def linear(self) -> LinearPart:
        """What it does to morphed rows, but for the bias."""
        layout = Layout.of(self.layout, self.input_shape, self.kappa)
        if self.mixing is not None and not isinstance(layout, RowsLayout):
            raise ShapeError(f"an augmented layer for {self.layout} does not come in factors")
        if isinstance(layout, TilesLayout):
            if self.geometry is None:
                raise ShapeError("an augmented layer for tiles has to say its kernel and stride")
            part = TileKernel(self.weight, layout, self.geometry, self.output_shape)
            if self.geometry.output_grid(self.network_shape[1:]) != self.output_shape[1:]:
                raise ShapeError(f"a layer of this kernel and padding does not give {self.output_shape}")
            return part
        if self.mixing is not None:
            return FactoredMatrix(self.weight, self.mixing, self.input_shape, self.output_shape)
        return DenseMatrix(self.weight, self.input_shape, self.output_shape)

    @property
    def form(self) -> LayerForm:
        """Whether its numbers are two factors, or one array."""
        return "dense" if self.mixing is None else "factored"

    @property
    def elements(self) -> int:
        """Elements of a sample."""
        return element_count(self.input_shape)

    @property
    def dtype(self) -> FloatType:
        """What its numbers are stored as."""
        return self.weight.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that its numbers take, the bias aside."""
        return self.weight.nbytes + (0 if self.mixing is None else self.mixing.nbytes)

    @property
    def matrix(self) -> Array:
        """The paper's C^ac written out, (input elements, output elements): for small layers only."""
        if isinstance(self.linear, DenseMatrix):
            return self.linear.matrix
        if isinstance(self.linear, FactoredMatrix):
            return self.rows(np.arange(self.elements))
        return self.columns(np.arange(element_count(self.output_shape)))

    def rows(self, indices: Indices) -> Array:
        """Some rows of C^ac, (rows, output elements): what single input elements add to features."""
        return self.linear.rows(indices)

    def columns(self, indices: Indices) -> Array:
        """Some columns of C^ac, (input elements, columns): what output elements are made of."""
        return self.linear.columns(indices)

    def features(self, morphed: Array) -> Array:
        """Features of morphed samples, (b, *input_shape) to (b, *output_shape): the reference in NumPy."""
        rows = rows_of(check_floats(morphed), self.input_shape)
        return add_bias(self.linear.features(rows).reshape(len(rows), *self.output_shape), self.bias)

    def for_shape(self, input_shape: Shape) -> "AugmentedLayer":
        """The same layer for samples of another size, in tiles of the same side.

        None of its numbers change. Every tile is treated alike, and zeros stay zeros beyond the edge, so
        this is the augmented layer that the same core gives for a first layer with these samples.

        Raises:
            ParameterError: if its blocks are not tiles, or samples of this shape have no such tiles.
        """
        if not isinstance(self.linear, TileKernel):
            raise ParameterError("an augmented layer in blocks of rows is for samples of one shape")
        tiles, geometry = self.linear.layout, self.linear.geometry
        if input_shape[:1] != self.input_shape[:1] or len(input_shape) != len(self.input_shape):
            ours, theirs = shape_text(self.input_shape), shape_text(input_shape)
            raise ParameterError(f"samples of shape {theirs} have other channels or axes than {ours}")
        return replace(
            self,
            input_shape=input_shape,
            output_shape=(self.output_shape[0], *geometry.output_grid(input_shape[1:])),
            kappa=TilesLayout.of_side(input_shape, tiles.tile).kappa,
            plain_shape=None,
        )
