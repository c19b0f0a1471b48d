"""Samples times the core: cut into blocks, multiplied and put together again, some samples at a time.

Some at a time, because what was just written is still in the processor's cache when it is looked at and put
where it belongs. A large product alone hardly notices; where the core is small, moving the data to and fro
takes as long as multiplying it.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from mole.errors import ShapeError
from mole.scheme.layouts import Layout
from mole.scheme.shapes import Array, FloatType, check_finite
from mole.scheme.sharing_out import single_products

Product = Callable[[Array, Array, Array], object]
"""Multiplies two matrices into a third."""

ELEMENTS_AT_ONCE = 1 << 18
ALIKE = 48  # blocks: libraries take a dozen or two at a time, and round what is left over in other ways
BLOCKS_AT_ONCE = 2048  # or more: fewer would not be worth the library's own preparation of a large core


def multiply(a: Array, b: Array, out: Array) -> None:
    """The product by NumPy's library, on the processor."""
    np.matmul(a, b, out=out)


def block_product(
    layout: Layout,
    rows: Array,
    matrix: Array,
    out: Array,
    *,
    product: Product = multiply,
    threads: int = 1,
) -> None:
    """Every block of every row, (n, elements), times a matrix, (q, q), into `out`, (n, elements).

    `out` is in row-major order. Several threads take parts of the samples, where there are enough of them,
    and each multiplies by itself; one thread leaves the product to the library's own.

    Raises:
        ShapeError: if a row has a NaN or an infinity, or a result does not fit in the type of `out`.
    """
    parts = _parts(len(rows), layout, threads)
    threads = min(threads, len(parts))

    def work(first: int) -> bool:
        cut, made = (np.empty((0, layout.block), matrix.dtype) for _ in range(2))
        for part in parts[first :: max(1, threads)]:
            count = layout.blocks * (part.stop - part.start)
            if layout.moves or rows.dtype != matrix.dtype:
                cut = _room(cut, count)
                blocks = layout.to_blocks(rows[part], out=cut[:count])
            else:
                blocks = layout.to_blocks(rows[part])
            is_direct = out.dtype == matrix.dtype and not layout.moves
            made = made if is_direct else _room(made, count)
            results = layout.to_blocks(out[part]) if is_direct else made[:count]
            with np.errstate(over="ignore", invalid="ignore"):  # a sentence says it better
                product(blocks, matrix, results)
                if not is_direct:
                    layout.to_rows(results, out=out[part])
            # Nothing times a NaN or an infinity is finite: one in a block shows in all of its product.
            if not np.isfinite(results if out.dtype == matrix.dtype else out[part]).all():
                return False
        return True

    if threads > 1:
        with single_products(threads) as pool:
            is_finite = all(pool.map(work, range(threads)))
    else:
        is_finite = work(0)
    if not is_finite:
        check_finite(rows)
        raise does_not_fit(out.dtype)


def does_not_fit(dtype: FloatType) -> ShapeError:
    """What to say where values are too large for a number type."""
    return ShapeError(f"values do not fit in {dtype}: use a larger float type, or smaller values")


def _parts(count: int, layout: Layout, threads: int) -> list[slice]:
    """Samples to work on at a time: parts of about the same size, as many for each thread."""
    if count < 2:
        return [slice(0, count)][:count]
    step = ALIKE // math.gcd(ALIKE, layout.blocks)
    at_once = max(ELEMENTS_AT_ONCE, BLOCKS_AT_ONCE * layout.block) // layout.elements
    parts = -(-count // max(1, at_once))
    parts = -(-parts // threads) * threads if parts > 1 else 1
    length = -(-count // (step * parts)) * step
    starts = [*range(0, count - 1, length)]  # no sample is left over all alone
    return [slice(start, stop) for start, stop in pairwise([*starts, count])]


def _room(room: Array, count: int) -> Array:
    """Room for so many blocks: what there is, or new."""
    return room if len(room) >= count else np.empty((count, room.shape[1]), room.dtype)
