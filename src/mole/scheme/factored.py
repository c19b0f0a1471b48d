"""C^ac in two factors: at every output position few components, and how the channels are mixed of them.

All channels at one output position look at the same window of the image, so their columns of C^ac lie in a
space of as many dimensions as the window has elements: 27 for a 3x3 window in colour, however many channels
there are. At that position C^ac is therefore (elements x 27) times (27 x channels). That is exact, and with
64 channels it takes less than half of the numbers and of the products.

`mole.scheme.factoring` chooses the factors, by what C^ac itself shows and nothing else.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mole.errors import ParameterError, ShapeError
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layouts import Indices
from mole.scheme.linear_parts import LinearPart
from mole.scheme.shapes import Array, Shape, element_count

LayerForm = Literal["dense", "factored"]
LAYER_FORMS: tuple[LayerForm, ...] = get_args(LayerForm)


@dataclass(frozen=True, eq=False)
class FactoredMatrix(LinearPart):
    """C^ac as a product at every output position.

    Attributes:
        basis: components of each position side by side, (input elements, positions x components).
        mixing: what each channel takes of them, (positions, components, channels).
        input_shape: of a sample.
        output_shape: of the features of one sample.
    """

    basis: Array
    mixing: Array
    input_shape: Shape
    output_shape: Shape

    def __post_init__(self) -> None:
        channels, positions = self.output_shape[0], element_count(self.output_shape[1:])
        ways = f"an augmented layer in factors from {self.input_shape} to {self.output_shape}"
        if self.mixing.ndim != 3 or self.mixing.shape[::2] != (positions, channels):
            raise ShapeError(f"{ways} mixes ({positions}, components, {channels}), not {self.mixing.shape}")
        if not self.components:
            raise ShapeError(f"{ways} has no components")
        expected = (element_count(self.input_shape), positions * self.components)
        if self.basis.shape != expected:
            raise ShapeError(f"{ways} has a basis of shape {expected}, not {self.basis.shape}")
        if self.basis.dtype != self.mixing.dtype:
            raise ShapeError(
                f"{ways} has numbers of one type, not {self.basis.dtype} and {self.mixing.dtype}"
            )

    @property
    def components(self) -> int:
        """How many components there are at each position."""
        return int(self.mixing.shape[1])

    def features(self, rows: Array) -> Array:
        """A large product, and a small one at every position."""
        return self._mixed(rows @ self.basis)

    def rows(self, indices: Indices) -> Array:
        """Rows of the basis, mixed."""
        return self._mixed(_widened(self.basis[indices]))

    def columns(self, indices: Indices) -> Array:
        """Columns, by position: all channels of one position come of the same components."""
        channels, positions = np.divmod(np.asarray(indices), len(self.mixing))
        basis = self.basis.reshape(len(self.basis), len(self.mixing), self.components)
        found = np.empty((len(basis), len(channels)), _widened(self.basis[:0]).dtype)
        for position in np.unique(positions):
            wanted = np.flatnonzero(positions == position)
            mixing = _widened(self.mixing[position][:, channels[wanted]])
            found[:, wanted] = _widened(basis[:, position]) @ mixing
        return found

    def _mixed(self, components: Array) -> Array:
        """Features, (b, outputs), of components, (b, positions x components)."""
        by_position = components.reshape(len(components), len(self.mixing), self.components)
        mixed = by_position.transpose(1, 0, 2) @ self.mixing  # (positions, b, channels)
        return mixed.transpose(1, 2, 0).reshape(len(components), -1)


def _widened(array: Array) -> Array:
    """Numbers to calculate with: 16 bits are for storing."""
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def components_of(layer: FirstLayer) -> int:
    """How many components the columns of one position have, at most.

    >>> components_of(FirstLayer.conv(np.ones((64, 3, 3, 3)), None, input_shape=(3, 8, 8)))
    27
    """
    return min(_taps(layer), layer.channels)


def fewest_numbers(*, inputs: int, channels: int, positions: int, taps: int) -> int:
    """Numbers of an augmented layer in blocks of rows, in the form that has fewer.

    >>> fewest_numbers(inputs=3072, channels=64, positions=1024, taps=27)
    86704128
    >>> fewest_numbers(inputs=3072, channels=16, positions=1024, taps=27) == 3072 * 16 * 1024
    True
    """
    return positions * min(inputs * channels, min(taps, channels) * (inputs + channels))


def numbers_in_rows(layer: FirstLayer, form: LayerForm | None = None) -> int:
    """Numbers of the augmented layer of a first layer in blocks of rows, in a form or the smaller one."""
    inputs, positions = element_count(layer.input_shape), element_count(layer.output_grid)
    dense = inputs * element_count(layer.output_shape)
    factored = positions * components_of(layer) * (inputs + layer.channels)
    return min(dense, factored) if form is None else dense if form == "dense" else factored


def form_for(layer: FirstLayer, form: LayerForm | None = None) -> LayerForm:
    """The form that is asked for, or else the one with fewer numbers.

    >>> [form_for(FirstLayer.conv(np.ones((channels, 3, 3, 3)), None, input_shape=(3, 32, 32)))
    ...  for channels in (16, 64)]
    ['dense', 'factored']

    Raises:
        ParameterError: for a form that does not exist.
    """
    if form is None:
        return min(LAYER_FORMS, key=lambda one: numbers_in_rows(layer, one))
    if form not in LAYER_FORMS:
        raise ParameterError(f"an augmented layer is {' or '.join(LAYER_FORMS)}, not {form!r}")
    return form


def _taps(layer: FirstLayer) -> int:
    return layer.input_channels * element_count(layer.kernel)
