"""From features back to images: the least-squares solution for any linear first layer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mole.attacks.attack import NotApplicableError
from mole.d2r import sparse_layer_matrix
from mole.geometry import Array, element_count
from mole.layer import FirstLayer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_ELEMENTS = 12_288  # a Gram matrix of that side fills 1.2 GB
RIDGE = 1e-12  # of its mean diagonal element: keeps the solution small where features say nothing
NOTHING = 1e-8  # a pivot of the Gram matrix below this share of its mean says nothing new


@dataclass(frozen=True, eq=False)
class Deconvolution:
    """Undoes a first layer, as far as it can be undone.

    With F = D C, images are F C^T (C C^T)^-1. C is sparse; C C^T has the side of one image, and is factored
    once.

    >>> blur = FirstLayer.conv(np.array([[[[1.0, 0.5]]]]), None, input_shape=(1, 1, 4), padding=(0, 1))
    >>> undo = Deconvolution.of(blur)
    >>> undo.rank, undo.elements
    (4, 4)

    Attributes:
        layer: what is undone.
        rank: how many numbers of an image its features pin down ...
        elements: ... out of how many.
    """

    layer: FirstLayer
    rank: int
    elements: int
    _matrix: "csr_array"
    _factor: tuple[Array, bool]

    @classmethod
    def of(cls, layer: FirstLayer) -> "Deconvolution":
        """Prepare for a layer."""
        elements = element_count(layer.input_shape)
        if elements > MAX_ELEMENTS:
            raise NotApplicableError(
                f"undoing a layer on {elements} elements takes a matrix of that side: too large here"
            )
        matrix = sparse_layer_matrix(layer).astype(np.float64)
        gram = (matrix @ matrix.T).toarray()
        mean = float(gram.trace()) / elements
        gram[np.diag_indices(elements)] += RIDGE * mean
        factor = cho_factor(gram, overwrite_a=True)
        rank = int((np.diag(factor[0]) ** 2 > NOTHING * mean).sum())
        return cls(layer, rank, elements, matrix, factor)

    @property
    def is_exact(self) -> bool:
        """Whether features pin down every number of an image."""
        return self.rank == self.elements

    def __call__(self, features: Array) -> Array:
        """Plain images from features in the layer's own channel order: (b, *output_shape) in."""
        values = features.astype(np.float64)
        if self.layer.bias is not None:
            values = values - self.layer.bias.reshape(-1, *(1,) * (features.ndim - 2))
        projected = self._matrix @ values.reshape(len(values), -1).T
        images: Array = cho_solve(self._factor, projected).T.astype(np.float32)
        return images.reshape(len(features), *self.layer.input_shape)
