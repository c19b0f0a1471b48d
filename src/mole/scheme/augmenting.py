"""Builds the augmented layer of a first layer: M^-1 C with shuffled channels (paper, section 3.3).

Row i of M^-1 C is what the first layer's linear part makes of row i of M^-1, seen as an image. So the layer
is built by convolving M^-1, in chunks, on every processor of the machine, and C never exists in memory.
Where two factors have fewer numbers than the matrix, they are built instead.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
import numpy.typing as npt

from mole.errors import ParameterError, ShapeError
from mole.quantities import size_text
from mole.scheme.augmented import STORED_DTYPES, AugmentedLayer
from mole.scheme.convolution import Convolution
from mole.scheme.factored import LayerForm, components_of, form_for
from mole.scheme.factoring import build_factors
from mole.scheme.filling import can_fill
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layer_sizes import too_large
from mole.scheme.layouts import TilesLayout
from mole.scheme.morphing import Morphing, narrow
from mole.scheme.shapes import Array, FloatType, Shape, element_count, shape_text
from mole.scheme.tile_kernel import build_tile_kernel


def build_augmented_layer(
    layer: FirstLayer,
    morphing: Morphing,
    channel_order: npt.NDArray[np.intp],
    *,
    key_fingerprint: str,
    dtype: npt.DTypeLike = np.float32,
    form: LayerForm | None = None,
) -> AugmentedLayer:
    """Augment a first layer: output channel c shows what the first layer's channel_order[c] shows."""
    stored = _stored_type(dtype)
    layout = morphing.layout
    if not can_fill(layer.input_shape, layout):
        raise ShapeError(
            f"the first layer takes samples of shape {layer.input_shape} "
            f"and the key morphs {layout.input_shape}: make a key for this layer"
        )
    if isinstance(layout, TilesLayout):
        if form is not None:
            raise ParameterError("an augmented layer for tiles has one form: leave the form out")
        weight, mixing = build_tile_kernel(layer, morphing, channel_order, stored), None
    elif form_for(layer, form) == "factored":
        positions = element_count(layer.output_grid)
        shape = (element_count(layer.input_shape), positions, components_of(layer))
        room = _allocate(shape, stored, layer)
        weight, mixing = build_factors(layer, morphing, channel_order, stored, room)
    else:
        weight, mixing = _convolved_inverse(layer, morphing, channel_order, stored), None
    bias = None if layer.bias is None else narrow(layer.bias[channel_order], stored)
    return AugmentedLayer(
        weight=weight,
        bias=bias,
        input_shape=layout.input_shape,
        output_shape=layer.output_shape,
        kappa=layout.kappa,
        layout=layout.name,
        key_fingerprint=key_fingerprint,
        normalisation=layer.normalisation,
        geometry=LayerGeometry.of(layer),
        plain_shape=None if layer.input_shape == layout.input_shape else layer.input_shape,
        mixing=mixing,
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


def _allocate(shape: Shape, dtype: FloatType, layer: FirstLayer) -> Array:
    try:
        if too_large(element_count(shape) * dtype.itemsize):
            raise MemoryError
        return np.zeros(shape, dtype)  # which costs nothing until something is written there
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
