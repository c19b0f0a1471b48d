"""The secret core, and morph and unmorph: the block-diagonal product with M, without ever building M.

M repeats the core kappa times on its diagonal, so multiplying a sample by M is the same as cutting it into
kappa blocks and multiplying each by the core: one matrix product for a whole batch (paper, equation 2).

"Random, invertible and without a zero" is not enough for a core in floating point: the condition number
decides how much of the features survives. So every core is checked for it when it is made. Each is given
its randomness as independent standard normal numbers: where those come from is the key's business.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NoReturn, get_args

import numpy as np

from mole.errors import CoreError, ShapeError
from mole.progress import Progress, no_progress
from mole.scheme.block_product import Product, block_product, does_not_fit, multiply
from mole.scheme.filling import filled
from mole.scheme.layouts import Indices, Layout, ShuffledTilesLayout
from mole.scheme.rotations import rotation_from
from mole.scheme.shapes import Array, FloatType, Shape, check_floats, rows_of, unroll
from mole.scheme.sharing_out import processors
from mole.scheme.sharing_out import product as shared_product
from mole.scheme.whitening import SPECTRUM_FLOOR, Whitening

CoreKind = Literal["orthogonal", "whitened", "gaussian"]
CORE_KINDS: tuple[CoreKind, ...] = get_args(CoreKind)
# A Gaussian matrix of side q has a condition number of a few q; one in sixteen exceeds this many.
GAUSSIAN_CONDITION_PER_SIDE = 32.0
POWER_ITERATIONS = 24


@dataclass(frozen=True, eq=False, repr=False)
class Core:
    """A checked q x q matrix with its inverse. Both are secret: they never show in a `repr`.

    Attributes:
        matrix: the core.
        make_inverse: its inverse, or a function that makes and checks it when it is first asked for: who
            only morphs never needs it.
    """

    matrix: Array
    make_inverse: Array | Callable[[], Array]

    @cached_property
    def inverse(self) -> Array:
        """The inverse of the core."""
        return self.make_inverse() if callable(self.make_inverse) else self.make_inverse

    @property
    def size(self) -> int:
        """The paper's q."""
        return len(self.matrix)

    @property
    def condition(self) -> float:
        """The condition number in the 2-norm, estimated from below to a few per cent."""
        return _condition(self.matrix, self.inverse)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Core is secret and never pickled, because a pickle is not encrypted")

    def __repr__(self) -> str:
        return f"Core({self.size}x{self.size}, secret)"


def orthogonal_core(normal: Array, progress: Progress = no_progress) -> Core:
    """A core drawn evenly from all rotations and reflections (Haar); condition 1.

    >>> core = orthogonal_core(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> core.matrix.round(2).tolist()
    [[0.6, -0.8], [0.8, 0.6]]
    """
    matrix = _usable(rotation_from(normal, progress))
    probes = np.cos(np.outer(np.arange(len(matrix)), np.arange(1, 5)))
    if not np.allclose(matrix @ (matrix.T @ probes), probes, rtol=0, atol=1e-9):
        raise CoreError("the core is not orthogonal: generate another key")
    return Core(matrix, lambda: np.ascontiguousarray(matrix.T))


def whitened_core(normal: Array, whitening: Whitening, progress: Progress = no_progress) -> Core:
    """An orthogonal core after a whitening: no direction of morphed data stands out by its variance.

    Raises:
        CoreError: when the inverse is first asked for, if the whitening's condition is beyond use.
    """
    rotation = orthogonal_core(normal, progress).matrix
    whiten = whitening.matrix.astype(np.float64)
    matrix = _usable(shared_product(whiten, rotation))

    def inverse() -> Array:
        made = rotation.T @ _inverse(whiten)
        return _well_conditioned(matrix, made, limit=1.1 / math.sqrt(SPECTRUM_FLOOR))

    return Core(matrix, inverse)


def gaussian_core(normal: Array) -> Core:
    """The paper's core: independent normal elements, refused if inverting it would lose too much precision.

    Elements are scaled by 1/sqrt(q), so that morphed data keeps the scale of the plain data.
    """
    size = len(normal)
    matrix = _usable(normal / math.sqrt(size))
    return Core(
        matrix, _well_conditioned(matrix, _inverse(matrix), limit=GAUSSIAN_CONDITION_PER_SIDE * size)
    )


def _inverse(matrix: Array) -> Array:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise CoreError("the core cannot be inverted: generate another key") from None


def _usable(matrix: Array) -> Array:
    """The same matrix, unless something in it is no number, or zero."""
    if not np.isfinite(matrix).all():
        raise CoreError("the core has a NaN or an infinity: generate another key")
    if np.count_nonzero(matrix) < matrix.size:
        raise CoreError("the core has an element that is zero: generate another key")
    return matrix


def _well_conditioned(matrix: Array, inverse: Array, *, limit: float) -> Array:
    """The same inverse, unless it has lost too much precision to be one."""
    if not np.isfinite(inverse).all():
        raise CoreError("the core has a NaN or an infinity: generate another key")
    condition = _condition(matrix, inverse)
    if not condition <= limit:
        raise CoreError(
            f"the core's condition number is {condition:.3g}, above {limit:.3g}: generate another key"
        )
    return inverse


def _condition(matrix: Array, inverse: Array) -> float:
    return _largest_singular_value(matrix) * _largest_singular_value(inverse)


def _largest_singular_value(matrix: Array) -> float:
    """Largest singular value by power iteration, from a fixed start: the same on every run."""
    vector = np.cos(np.arange(len(matrix), dtype=np.float64))
    for _ in range(POWER_ITERATIONS):
        vector = matrix.T @ (matrix @ vector)
        length = float(np.linalg.norm(vector))
        if not 0 < length < math.inf:
            return math.inf
        vector /= length
    return float(np.linalg.norm(matrix @ vector))


@dataclass(frozen=True, eq=False, repr=False)
class Morphing:
    """A core at work on samples cut into blocks. It undoes morphing, so it is as secret as the key.

    Attributes:
        layout: how samples are cut.
        core: what each block is multiplied by.
        tile_order: in the layout of shuffled tiles the tile of the sample that comes to each place,
            (blocks,); None in others.
    """

    layout: Layout
    core: Core
    tile_order: Indices | None = None
    _casts: dict[tuple[str, FloatType], Array] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.core.size != self.layout.block:
            raise ShapeError(
                f"the core has side {self.core.size}, and blocks of this input {self.layout.block}"
            )
        if (self.tile_order is not None) != isinstance(self.layout, ShuffledTilesLayout):
            raise ShapeError(f"an order of tiles is for shuffled ones, and not for {self.layout.name}")

    @classmethod
    def of(
        cls, layout: str, input_shape: Shape, kappa: int, core: Core, tile_order: Indices | None = None
    ) -> "Morphing":
        """A core at work on samples of one shape, in the layout of that name."""
        return cls(Layout.of(layout, input_shape, kappa), core, tile_order)

    def morph(
        self,
        batch: Array,
        *,
        out: Array | None = None,
        product: Product = multiply,
        threads: int | None = None,
    ) -> Array:
        """Morphed data from plain data, in its dtype; in its shape, too, unless tiles had to be filled.

        Args:
            batch: plain data, (n, *shape) or (n, elements).
            out: where morphed data goes: an array of its shape, or of rows, in row-major order, and no part
                of the batch. None for a new one.
            product: what multiplies the matrices.
            threads: how many share out a large batch; None for one on each processor.
        """
        plain = self.arranged(filled(check_floats(batch), self.layout))
        return self._multiply(plain, "matrix", out=out, product=product, threads=threads)

    def unmorph(self, batch: Array) -> Array:
        """Plain data from morphed data, in the batch's own shape and dtype; what filled tiles is left."""
        return self.put_back(self._multiply(batch, "inverse"))

    def arranged(self, batch: Array) -> Array:
        """Plain data with its tiles where they stand when it is morphed: elsewhere only if shuffled."""
        return batch if self.tile_order is None else self._in_order(batch, self.tile_order)

    def put_back(self, batch: Array) -> Array:
        """Undo `arranged`."""
        return batch if self.tile_order is None else self._in_order(batch, np.argsort(self.tile_order))

    def inverse_rows(self, start: int, stop: int, *, dtype: FloatType) -> Array:
        """Rows `start` to `stop` of M^-1: (stop - start, elements)."""
        return self.layout.inverse_rows(self._cast("inverse", dtype), start, stop)

    def _multiply(
        self,
        batch: Array,
        which: str,
        *,
        out: Array | None = None,
        product: Product = multiply,
        threads: int | None = None,
    ) -> Array:
        matrix = self._cast(which, compute_dtype(check_floats(batch).dtype))
        rows = rows_of(batch, self.layout.input_shape)
        made = np.empty(batch.shape, batch.dtype) if out is None else out
        threads = processors() if threads is None else threads
        block_product(self.layout, rows, matrix, unroll(made), product=product, threads=threads)
        return made

    def _in_order(self, batch: Array, order: Indices) -> Array:
        rows = rows_of(batch, self.layout.input_shape)
        blocks = self.layout.to_blocks(rows).reshape(len(rows), self.layout.blocks, -1)
        return self.layout.to_rows(blocks[:, order]).reshape(batch.shape)

    def _cast(self, which: str, dtype: FloatType) -> Array:
        """The core or its inverse in the precision of the data, made once."""
        if (which, dtype) not in self._casts:
            self._casts[which, dtype] = getattr(self.core, which).astype(dtype, copy=False)
        return self._casts[which, dtype]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Morphing is secret and never pickled, because a pickle is not encrypted")

    def __repr__(self) -> str:
        return f"Morphing(input_shape={self.layout.input_shape}, kappa={self.layout.kappa}, secret)"


def narrow(values: Array, dtype: FloatType, out: Array | None = None) -> Array:
    """Values in a dtype that may be smaller, in `out` if it is given; an error where they do not fit."""
    with np.errstate(over="ignore"):
        if out is None:
            narrowed = values.astype(dtype, copy=False)
        else:
            narrowed = out
            np.copyto(narrowed, values, casting="same_kind")
    if not np.isfinite(narrowed).all():
        raise does_not_fit(dtype)
    return narrowed


def compute_dtype(dtype: FloatType) -> FloatType:
    """Products run in 32 or 64 bits, whatever the data is stored in: half precision is slower."""
    return np.dtype(np.float64) if dtype.itemsize >= 8 else np.dtype(np.float32)
