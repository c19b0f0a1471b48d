"""How large an augmented layer would be, before anything of that size is made."""

import os

import numpy as np

from mole.errors import ParameterError
from mole.quantities import size_text
from mole.scheme.augmented import LayerDtype
from mole.scheme.factored import LayerForm, numbers_in_rows
from mole.scheme.first_layer import FirstLayer
from mole.scheme.geometry import LayerGeometry
from mole.scheme.layouts import Layout, TilesLayout, tile_sides
from mole.scheme.shapes import element_count, shape_text
from mole.scheme.tile_geometry import TileGeometry
from mole.scheme.tile_kernel import check_tiles

USUAL_TILES = (8, 16, 4)  # what is proposed, if it fits


def too_large(needed: int) -> str | None:
    """Why a first layer whose augmented layer has so many bytes cannot be delivered in blocks of rows.

    >>> too_large(4 * 192 * 256)
    >>> too_large(4 * (3 * 2000 * 2000) * (64 * 1000 * 1000))
    'in blocks of rows its augmented layer would take 3.1 PB, more than the memory of this machine'
    """
    if needed <= _physical_memory():
        return None
    return (
        f"in blocks of rows its augmented layer would take {size_text(needed)}, more than the memory of "
        "this machine"
    )


def refuse_too_large(
    layer: FirstLayer,
    layout: Layout | None = None,
    dtype: LayerDtype | None = None,
    form: LayerForm | None = None,
) -> None:
    """Stop before a key is made, or any work is done, for a layer whose augmented layer fits nowhere.

    Args:
        layer: the first layer.
        layout: how samples are cut; None for blocks of rows.
        dtype: how the augmented layer is to be stored; None if that is open, and 16 bits would do.
        form: of the augmented layer; None for the smaller one.

    Raises:
        ParameterError: with what it would take, and what would help.
        UnsupportedLayerError: if tiles are not for this layer.
    """
    if isinstance(layout, TilesLayout):
        check_tiles(layer, layout)
        needed = augmented_bytes(layer, layout)
        if needed > _physical_memory():
            raise ParameterError(
                f"tiles of {layout.tile} need an augmented layer of {size_text(needed)}, more than the "
                "memory of this machine: use smaller tiles"
            )
        return
    numbers = numbers_in_rows(layer, form)
    fits_in_half = too_large(2 * numbers) is None
    if dtype is None and fits_in_half:
        return
    if reason := too_large(np.dtype(dtype or "float32").itemsize * numbers):
        tile = _usual_tile(layer)
        helps = (
            "make a key with tiles" if tile else "ask its developer for smaller images or a larger stride"
        )
        advice = {"layer_dtype": "float16"} if fits_in_half else {"tile": str(tile)} if tile else None
        shape = shape_text(layer.input_shape)
        raise ParameterError(f"a first layer for {shape} is too large: {reason}; {helps}", advice=advice)


def augmented_bytes(layer: FirstLayer, layout: Layout | None = None, *, itemsize: int = 4) -> int:
    """What the numbers of an augmented layer take; without a layout, in blocks of rows."""
    if isinstance(layout, TilesLayout):
        tiles = TileGeometry(LayerGeometry.of(layer), layout.tile)
        return element_count(tiles.kernel_shape(layer.channels, layer.input_channels)) * itemsize
    return numbers_in_rows(layer) * itemsize


def _usual_tile(layer: FirstLayer) -> int | None:
    """A side of tiles that fits a layer, if possible one that fills its samples; None if there is none."""
    if not layer.kernel or len(layer.input_shape) != len(layer.kernel) + 1:
        return None
    filling = tile_sides(layer.input_shape)
    usual = [side for side in USUAL_TILES if side <= min(layer.grid)]
    sides = [*(side for side in usual if side in filling), *filling[1:], *usual]
    return next((side for side in sides if not any(side % stride for stride in layer.stride)), None)


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return float("inf")
