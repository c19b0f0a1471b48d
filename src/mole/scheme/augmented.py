"""The augmented layer: M^-1 C with shuffled channels (paper, section 3.3).

Row i of M^-1 C is what the first layer's linear part makes of row i of M^-1, seen as an image. So the layer
is built by convolving M^-1, in chunks, on every processor of the machine, and C never exists in memory.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.limits import MAX_ELEMENTS, MAX_FEATURES
from mole.quantities import size_text
from mole.scheme.convolution import Convolution, add_bias
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import Indices, Layout, LayoutName
from mole.scheme.morphing import Morphing, narrow
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

LayerDtype = Literal["float32", "float16"]
LAYER_DTYPES: tuple[LayerDtype, ...] = get_args(LayerDtype)
STORED_DTYPES = (*LAYER_DTYPES, "float64")  # what a layer file may hold; 64 bits are for experiments
FINGERPRINT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, eq=False)
class AugmentedLayer:
    """What the developer puts in place of its first layer.

    Attributes:
        matrix: the paper's C^ac, (input elements, output elements).
        bias: the first layer's bias in the shuffled order, (channels,), or None.
        input_shape: shape of a morphed sample, the same as that of a plain one.
        output_shape: shape of its features, (channels, *grid), the same as the first layer's.
        kappa, layout: how the data was morphed.
        key_fingerprint: names the key, and says nothing about it.
        normalisation: what the provider applied before morphing, if the first layer asked for it.
        geometry: kernel, stride and so on of the first layer; None in files from before version 0.5.
    """

    matrix: Array
    bias: Array | None
    input_shape: Shape
    output_shape: Shape
    kappa: int
    layout: LayoutName
    key_fingerprint: str
    normalisation: Normalisation | None = None
    geometry: LayerGeometry | None = None

    def __post_init__(self) -> None:
        for name, most in (("input_shape", MAX_ELEMENTS), ("output_shape", MAX_FEATURES)):
            object.__setattr__(self, name, check_shape(getattr(self, name), most))
        Layout.of(self.layout, self.input_shape, self.kappa)  # refuses a kappa or a layout that cannot be
        expected = (element_count(self.input_shape), element_count(self.output_shape))
        if self.matrix.shape != expected:
            raise ShapeError(
                f"an augmented layer from {self.input_shape} to {self.output_shape} has a matrix of "
                f"shape {expected}, not {self.matrix.shape}"
            )
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
    def elements(self) -> int:
        """Elements of a sample: rows of the matrix."""
        return len(self.matrix)

    @property
    def dtype(self) -> FloatType:
        """What its numbers are stored as."""
        return self.matrix.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that its numbers take, the bias aside."""
        return self.matrix.nbytes

    def rows(self, indices: Indices) -> Array:
        """Some rows of the matrix, (rows, output elements): what single input elements add to features."""
        return self.matrix[indices]

    def columns(self, indices: Indices) -> Array:
        """Some columns of the matrix, (input elements, columns): what output elements are made of."""
        return self.matrix[:, indices]

    def features(self, morphed: Array) -> Array:
        """Features of morphed samples, (b, *input_shape) to (b, *output_shape): the reference in NumPy."""
        rows = rows_of(check_floats(morphed), self.input_shape)
        return add_bias((rows @ self.matrix).reshape(len(rows), *self.output_shape), self.bias)


def build_augmented_layer(
    layer: FirstLayer,
    morphing: Morphing,
    channel_order: npt.NDArray[np.intp],
    *,
    key_fingerprint: str,
    dtype: npt.DTypeLike = np.float32,
) -> AugmentedLayer:
    """Augment a first layer: output channel c shows what the first layer's channel_order[c] shows."""
    stored = _stored_type(dtype)
    layout = morphing.layout
    if layer.input_shape != layout.input_shape:
        raise ShapeError(
            f"the first layer takes samples of shape {layer.input_shape} "
            f"and the key morphs {layout.input_shape}: make a key for this layer"
        )
    matrix = _convolved_inverse(layer, morphing, channel_order, stored)
    bias = None if layer.bias is None else narrow(layer.bias[channel_order], stored)
    return AugmentedLayer(
        matrix=matrix,
        bias=bias,
        input_shape=layer.input_shape,
        output_shape=layer.output_shape,
        kappa=layout.kappa,
        layout=layout.name,
        key_fingerprint=key_fingerprint,
        normalisation=layer.normalisation,
        geometry=LayerGeometry.of(layer),
    )


def _stored_type(dtype: npt.DTypeLike) -> FloatType:
    try:
        stored = np.dtype(dtype)
    except TypeError:
        stored = None
    if stored is None or stored.name not in STORED_DTYPES:
        raise ParameterError(f"an augmented layer is stored as {' or '.join(STORED_DTYPES)}, not {dtype}")
    return cast(FloatType, stored)


def _convolved_inverse(
    layer: FirstLayer,
    morphing: Morphing,
    channel_order: npt.NDArray[np.intp],
    stored: FloatType,
) -> Array:
    """M^-1 C, shuffled, by threads that each fill a span of its rows."""
    compute = np.result_type(stored, np.float32)
    elements = element_count(layer.input_shape)
    positions = element_count(layer.output_grid)
    matrix = _allocate((elements, layer.channels, positions), stored, layer)
    shared = Convolution(layer, dtype=compute, channel_order=channel_order)

    def fill(span: range) -> None:
        convolution = shared.twin()
        for start in range(span.start, span.stop, convolution.rows_at_once):
            stop = min(start + convolution.rows_at_once, span.stop)
            rows = morphing.inverse_rows(start, stop, dtype=compute)
            if stored == compute:
                narrow(convolution(rows, out=matrix[start:stop]), stored)  # checks that it fits
            else:
                matrix[start:stop] = narrow(convolution(rows), stored)

    # A Linear layer's product is large enough for BLAS to share it out by itself.
    threads = min(_usable_cores(), elements) if layer.kernel else 1
    edges = [elements * index // threads for index in range(threads + 1)]
    morphing.inverse_rows(0, 1, dtype=compute)  # casts the inverse once, before threads want it
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, map(range, edges[:-1], edges[1:])))
    return matrix.reshape(elements, layer.channels * positions)


def too_large(inputs: int, outputs: int, *, itemsize: int = 4) -> str | None:
    """Why a first layer with so many input and output elements cannot be delivered; None if it can.

    >>> too_large(3 * 8 * 8, 4 * 8 * 8)
    >>> too_large(3 * 2000 * 2000, 64 * 1000 * 1000)
    'cannot be delivered: the augmented layer would take 3.1 PB, more than the memory of this machine; its \
developer can export it again with a smaller input shape or a larger stride (`mole export-layer`)'
    """
    needed = inputs * outputs * itemsize
    if needed <= _physical_memory():
        return None
    return (
        f"cannot be delivered: the augmented layer would take {size_text(needed)}, more than the memory of "
        "this machine; its developer can export it again with a smaller input shape or a larger stride "
        "(`mole export-layer`)"
    )


def refuse_too_large(layer: FirstLayer, dtype: LayerDtype | None = None) -> None:
    """Stop before a key is made, or any work is done, for a layer whose augmented layer fits nowhere.

    Args:
        layer: the first layer.
        dtype: how the augmented layer is to be stored; None if that is open, and 16 bits would do.

    Raises:
        ParameterError: with what it would take, and who can change that.
    """
    sizes = element_count(layer.input_shape), element_count(layer.output_shape)
    fits_in_half = too_large(*sizes, itemsize=2) is None
    if dtype is None and fits_in_half:
        return
    if reason := too_large(*sizes, itemsize=np.dtype(dtype or "float32").itemsize):
        raise ParameterError(
            f"a first layer for {shape_text(layer.input_shape)} {reason}",
            advice={"layer_dtype": "float16"} if fits_in_half else None,
        )


def _allocate(shape: Shape, dtype: FloatType, layer: FirstLayer) -> Array:
    try:
        if too_large(shape[0], element_count(shape[1:]), itemsize=dtype.itemsize):
            raise MemoryError
        return np.empty(shape, dtype)
    except MemoryError:
        needed = size_text(element_count(shape) * dtype.itemsize)
        raise ParameterError(
            f"the augmented layer of a {shape_text(layer.input_shape)} input would take {needed}, more "
            "than this machine has: use smaller images or a larger stride"
        ) from None


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return float("inf")
