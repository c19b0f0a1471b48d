"""Undoing a first layer by least squares: images from features, the inverse core from the augmented layer.

Features of an image are D C. Rows of the augmented layer are rows of M^-1 times C, once the channels are in
order, so they are features of the inverse matrix: whatever gives images from features also gives the core.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf

from mole.attacks.tools.views import DeveloperView, NotApplicableError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_matrix import sparse_layer_matrix
from mole.scheme.layouts import Indices, Layout
from mole.scheme.shapes import Array, element_count

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_ELEMENTS = 12_288  # a Gram matrix of that side fills 1.2 GB
ROWS_AT_ONCE = 128  # of the augmented layer, in 64 bits
RIDGES = (1e-10, 1e-8)  # of the mean diagonal element: keep solutions small where features say nothing
NOTHING = 1e-9  # a pivot of the Gram matrix below this share of its mean says nothing new
PLENTY = 1e-4  # above this share, no pivot is in doubt


@dataclass(frozen=True, eq=False)
class Factor:
    """A Gram matrix G, ready for solving x G = y for many rows y at once."""

    rank: int
    _factor: tuple[Array, bool]

    @classmethod
    def of(cls, gram: Array) -> "Factor":
        """Factor a symmetric matrix that has no negative eigenvalues."""
        mean = float(gram.trace()) / len(gram)
        if not mean > 0:
            raise NotApplicableError(
                "the features of this layer do not depend on the images: they show nothing"
            )
        for ridge in RIDGES:  # rounding can make a singular matrix look negative
            raised = gram.copy()
            raised[np.diag_indices(len(gram))] += ridge * mean
            try:
                factor = cho_factor(raised, overwrite_a=True, check_finite=False)
            except LinAlgError:
                continue
            return cls(_rank(gram, np.diag(factor[0]) ** 2, mean), factor)
        raise NotApplicableError("this layer cannot be undone within the precision of the numbers at hand")

    def solve(self, rows: Array) -> Array:
        """The x of x G = y."""
        return np.asarray(cho_solve(self._factor, rows.T).T)


def _rank(gram: Array, pivots: Array, mean: float) -> int:
    """Rank of a Gram matrix. Small pivots can be trusted only if they are taken in order of size."""
    if pivots.min() > PLENTY * mean:
        return len(gram)
    return int(dpstrf(gram, tol=NOTHING * mean)[2])


@dataclass(frozen=True, eq=False)
class Deconvolution:
    """Undoes a first layer, as far as it can be undone.

    With F = D C, images are F C^T (C C^T)^-1, or F (C^T C)^-1 C^T where there are fewer features than
    pixels. C is sparse, and the square matrix is factored once.

    >>> blur = FirstLayer.conv(np.array([[[[1.0, 0.5]]]]), None, input_shape=(1, 1, 4), padding=(0, 1))
    >>> undo = Deconvolution.of(blur)
    >>> undo.rank, undo.elements
    (4, 4)

    Attributes:
        layer: what is undone.
        elements: how many numbers an image has.
    """

    layer: FirstLayer
    elements: int
    _matrix: "csr_array"
    _factor: Factor
    _fewer_features: bool

    @classmethod
    def of(cls, layer: FirstLayer) -> "Deconvolution":
        """Prepare for a layer."""
        elements = element_count(layer.input_shape)
        if elements > MAX_ELEMENTS:
            raise NotApplicableError(
                f"undoing a layer on {elements} elements takes a matrix of that side: too large here"
            )
        matrix = sparse_layer_matrix(layer).astype(np.float64)
        fewer = matrix.shape[1] < elements
        gram = matrix.T @ matrix if fewer else matrix @ matrix.T
        return cls(layer, elements, matrix, Factor.of(gram.toarray()), fewer)

    @property
    def rank(self) -> int:
        """How many numbers of an image its features pin down."""
        return self._factor.rank

    @property
    def is_exact(self) -> bool:
        """Whether features pin down every number of an image."""
        return self.rank == self.elements

    def __call__(self, features: Array) -> Array:
        """Plain images from features in the layer's own channel order: (b, *output_shape) in."""
        values = features.astype(np.float64)
        if self.layer.bias is not None:
            values = values - self.layer.bias.reshape(-1, *(1,) * (features.ndim - 2))
        rows = values.reshape(len(values), -1)
        if self._fewer_features:
            images = (self._matrix @ self._factor.solve(rows).T).T
        else:
            images = self._factor.solve((self._matrix @ rows.T).T)
        return np.asarray(images, np.float32).reshape(len(features), *self.layer.input_shape)


@dataclass(frozen=True, eq=False)
class CoreEquations:
    """M'^-1 [C_1 ... C_k] = [C^ac_1 ... C^ac_k], ready for solving.

    Band b holds the rows of block b. Each band is a set of equations for the same unknown, so together they
    can determine the core even where the features of a layer do not determine an image.

    Attributes:
        layout: which rows make up a band.
        rank: how many numbers of each row of M'^-1 the equations determine, out of `side`.
    """

    layout: Layout
    rank: int
    _bands: tuple["csr_array", ...]
    _factor: Factor

    @classmethod
    def of(cls, layer: FirstLayer, layout: Layout) -> "CoreEquations":
        """Prepare for a layer, and for data cut in this layout."""
        if layout.block > MAX_ELEMENTS:
            raise NotApplicableError(f"a core of side {layout.block} is too large to solve for here")
        matrix = sparse_layer_matrix(layer).astype(np.float64)
        bands = tuple(matrix[places] for places in layout.places)
        gram = sum((band @ band.T for band in bands[1:]), start=bands[0] @ bands[0].T)
        factor = Factor.of(gram.toarray())
        return cls(layout, factor.rank, bands, factor)

    @property
    def side(self) -> int:
        """Side of the core: the paper's q."""
        return self.layout.block

    @property
    def is_determined(self) -> bool:
        """Whether there is only one solution."""
        return self.rank == self.side

    def solve(self, view: DeveloperView, order: Indices, rows: Indices) -> Array:
        """Some rows of M'^-1, (rows, q), if this is the order of the augmented layer's channels."""
        projected = np.zeros((len(rows), self.side))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            for places, band in zip(self.layout.places, self._bands, strict=True):
                projected[part] += (band @ view.rows_in_order(order, places[rows[part]]).T).T
        return self._factor.solve(projected)

    def residual(self, view: DeveloperView, order: Indices, rows: Indices) -> float:
        """How much of those rows of the augmented layer no core explains: 0 for a solution, 1 at most."""
        solved = self.solve(view, order, rows)
        left, whole = 0.0, 0.0
        for places, band in zip(self.layout.places, self._bands, strict=True):
            delivered = view.rows_in_order(order, places[rows])
            left += float(np.square((band.T @ solved.T).T - delivered).sum())
            whole += float(np.square(delivered).sum())
        return float(np.sqrt(left / max(whole, 1e-300)))
