"""Solving the augmented layer for the inverse core, once the order of channels is known or assumed.

The kappa bands of rows of the augmented layer are M'^-1 times the bands of the first layer: each a set of
equations for the same unknown. Together they can determine the core of a layer whose features do not
determine an image.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mole.attacks.tools.attack import NotApplicableError
from mole.attacks.tools.deconvolution import MAX_ELEMENTS, Factor
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_matrix import sparse_layer_matrix
from mole.scheme.shapes import Array, element_count

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROWS_AT_ONCE = 128


@dataclass(frozen=True, eq=False)
class CoreEquations:
    """M'^-1 [C_1 ... C_k] = [C^ac_1 ... C^ac_k] for a first layer, ready for solving.

    Attributes:
        rank: how many numbers of each row of M'^-1 the equations determine ...
        side: ... out of how many: the paper's q.
    """

    rank: int
    side: int
    _bands: tuple["csr_array", ...]
    _factor: Factor

    @classmethod
    def of(cls, layer: FirstLayer, kappa: int) -> "CoreEquations":
        """Prepare for a layer."""
        side = element_count(layer.input_shape) // kappa
        if side > MAX_ELEMENTS:
            raise NotApplicableError(f"a core of side {side} is too large to solve for here")
        matrix = sparse_layer_matrix(layer).astype(np.float64)
        bands = tuple(matrix[band * side : (band + 1) * side] for band in range(kappa))
        gram = sum((band @ band.T for band in bands[1:]), start=bands[0] @ bands[0].T)
        factor = Factor.of(gram.toarray())
        return cls(factor.rank, side, bands, factor)

    @property
    def is_determined(self) -> bool:
        """Whether there is one solution only."""
        return self.rank == self.side

    def solve(
        self, augmented: AugmentedLayer, order: npt.NDArray[np.intp], rows: npt.NDArray[np.intp]
    ) -> Array:
        """Those rows of M'^-1, (rows, q), if channel c of the augmented layer is order[c] of the first."""
        projected = np.zeros((len(rows), self.side))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            for index, band in enumerate(self._bands):
                delivered = _in_order(augmented, order, index * self.side + rows[part])
                projected[part] += (band @ delivered.T).T
        return self._factor.solve(projected)

    def residual(
        self, augmented: AugmentedLayer, order: npt.NDArray[np.intp], rows: npt.NDArray[np.intp]
    ) -> float:
        """How much of those rows of the augmented layer no core explains: 0 for a solution, 1 at most."""
        solved = self.solve(augmented, order, rows)
        left, whole = 0.0, 0.0
        for index, band in enumerate(self._bands):
            delivered = _in_order(augmented, order, index * self.side + rows)
            left += float(np.square((band.T @ solved.T).T - delivered).sum())
            whole += float(np.square(delivered).sum())
        return float(np.sqrt(left / max(whole, 1e-300)))


def _in_order(augmented: AugmentedLayer, order: npt.NDArray[np.intp], rows: npt.NDArray[np.intp]) -> Array:
    """Rows of the augmented layer with its channels put in the first layer's order."""
    shuffled = augmented.matrix[rows].astype(np.float64).reshape(len(rows), len(order), -1)
    ordered = np.empty_like(shuffled)
    ordered[:, order] = shuffled
    return ordered.reshape(len(rows), -1)
