"""The linear part of an augmented layer: C^ac, in whichever form its numbers are kept.

Everybody who wants features, rows or columns of C^ac asks a `LinearPart`: the matrix need not exist.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mole.errors import ShapeError
from mole.scheme.layouts import Indices
from mole.scheme.shapes import Array, Shape, element_count


class LinearPart(ABC):
    """C^ac, (input elements, output elements), as something that can be asked."""

    @abstractmethod
    def features(self, rows: Array) -> Array:
        """Morphed rows times C^ac: (b, input elements) to (b, output elements)."""

    @abstractmethod
    def rows(self, indices: Indices) -> Array:
        """Some rows of C^ac, (rows, output elements): what single input elements add to features."""

    @abstractmethod
    def columns(self, indices: Indices) -> Array:
        """Some columns of C^ac, (input elements, columns): what output elements are made of."""


@dataclass(frozen=True, eq=False)
class DenseMatrix(LinearPart):
    """C^ac written out, as in the paper."""

    matrix: Array
    input_shape: Shape
    output_shape: Shape

    def __post_init__(self) -> None:
        expected = (element_count(self.input_shape), element_count(self.output_shape))
        if self.matrix.shape != expected:
            raise ShapeError(
                f"an augmented layer from {self.input_shape} to {self.output_shape} has a matrix of "
                f"shape {expected}, not {self.matrix.shape}"
            )

    def features(self, rows: Array) -> Array:
        """One product."""
        product: Array = rows @ self.matrix
        return product

    def rows(self, indices: Indices) -> Array:
        """Rows of the matrix."""
        return self.matrix[indices]

    def columns(self, indices: Indices) -> Array:
        """Columns of the matrix."""
        return np.asarray(self.matrix[:, indices])
