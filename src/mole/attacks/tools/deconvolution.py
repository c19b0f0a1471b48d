"""From features back to images: the least-squares solution for any linear first layer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpocon, dpstrf

from mole.attacks.tools.attack import NotApplicableError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_matrix import sparse_layer_matrix
from mole.scheme.shapes import Array, element_count

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_ELEMENTS = 12_288  # a Gram matrix of that side fills 1.2 GB
RIDGES = (1e-10, 1e-8)  # of the mean diagonal element: keep solutions small where features say nothing
NOTHING = 1e-9  # a pivot of the Gram matrix below this share of its mean says nothing new
SOUND = 1e-7  # with a smallest eigenvalue above this share of the largest, no pivot is in doubt


@dataclass(frozen=True, eq=False)
class Factor:
    """A Gram matrix, ready for solving: x G = y, for many rows y at once."""

    rank: int
    _factor: tuple[Array, bool]

    @classmethod
    def of(cls, gram: Array) -> "Factor":
        """Factor a symmetric matrix without negative eigenvalues."""
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
            return cls(_rank(gram, factor[0], mean), factor)
        raise NotApplicableError("this layer cannot be undone within the precision of the numbers at hand")

    def solve(self, rows: Array) -> Array:
        """The x of x G = y."""
        return np.asarray(cho_solve(self._factor, rows.T).T)


def _rank(gram: Array, factor: Array, mean: float) -> int:
    """Rank of a Gram matrix. Pivots tell it only if they are taken in order of size, which takes longer."""
    reciprocal_condition, _ = dpocon(factor, np.abs(gram).sum(axis=0).max())
    if reciprocal_condition > SOUND:
        return len(gram)
    return int(dpstrf(gram, tol=NOTHING * mean)[2])


@dataclass(frozen=True, eq=False)
class Deconvolution:
    """Undoes a first layer, as far as it can be undone.

    With F = D C, images are F C^T (C C^T)^-1, or F (C^T C)^-1 C^T where features are fewer than pixels. C
    is sparse, and the matrix in the middle is factored once.

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
