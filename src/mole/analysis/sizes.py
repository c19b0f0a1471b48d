"""What the formulas start from: the sizes of a first layer, and a setting around it."""

import math
from dataclasses import dataclass, fields

from mole.analysis.tile_sizes import TileSizes
from mole.errors import ParameterError
from mole.scheme.factored import fewest_numbers
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Shape, block_size, check_shape, element_count, shape_text


@dataclass(frozen=True, kw_only=True)
class LayerSizes:
    """Sizes of a first layer, whatever its number of axes, stride or padding.

    VGG-16's on CIFAR:

    >>> LayerSizes.conv(input_shape=(3, 32, 32), channels=64, kernel=3, padding=1)
    LayerSizes(input_channels=3, input_elements=3072, output_channels=64,
               output_positions=1024, kernel_elements=27, groups=1)

    Attributes:
        input_channels: the paper's alpha.
        input_elements: of a sample, alpha m^2.
        output_channels: beta.
        output_positions: of one feature map, n^2; 1 for Linear.
        kernel_elements: weights that make one output element, alpha p^2.
        groups: of channels, each of which sees a part of the input channels.
    """

    input_channels: int
    input_elements: int
    output_channels: int
    output_positions: int
    kernel_elements: int
    groups: int = 1

    def __post_init__(self) -> None:
        check_positive(**{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def of(cls, layer: FirstLayer) -> "LayerSizes":
        """The sizes of a layer."""
        return cls(
            input_channels=layer.input_channels if layer.kernel else layer.input_shape[0],
            input_elements=element_count(layer.input_shape),
            output_channels=layer.channels,
            output_positions=math.prod(layer.output_grid),
            kernel_elements=math.prod(layer.weight.shape[1:]),
            groups=layer.groups,
        )

    @classmethod
    def conv(
        cls, *, input_shape: Shape, channels: int, kernel: int, stride: int = 1, padding: int = 0
    ) -> "LayerSizes":
        """The sizes of a convolution with a square kernel, on any number of axes; no weights needed.

        ResNet-152's first layer on ImageNet:

        >>> LayerSizes.conv(
        ...     input_shape=(3, 224, 224), channels=64, kernel=7, stride=2, padding=3
        ... ).output_positions
        12544
        """
        input_channels, *grid = check_shape(input_shape)
        check_positive(kernel=kernel, stride=stride)
        sides = [(side + 2 * padding - kernel) // stride + 1 for side in grid]
        if min(sides, default=0) < 1:
            shape = shape_text(input_shape)
            raise ParameterError(
                f"a kernel of side {kernel} does not fit on a sample of {shape} with padding {padding}"
            )
        return cls(
            input_channels=input_channels,
            input_elements=element_count(input_shape),
            output_channels=channels,
            output_positions=math.prod(sides),
            kernel_elements=input_channels * kernel ** len(grid),
        )

    @property
    def output_elements(self) -> int:
        """Elements of one sample's features: beta n^2."""
        return self.output_channels * self.output_positions

    @property
    def stored_numbers(self) -> int:
        """Numbers of the augmented layer as it is stored: in two factors, where these have fewer."""
        return fewest_numbers(
            inputs=self.input_elements,
            channels=self.output_channels,
            positions=self.output_positions,
            taps=self.kernel_elements * self.groups,
        )


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A first layer, the key's parameters, and the network and data if they are known.

    >>> layer = LayerSizes.conv(input_shape=(3, 32, 32), channels=64, kernel=3, padding=1)
    >>> Setting(layer=layer, kappa=3, images=60_000).sigma
    0.5

    Attributes:
        layer: sizes of the first layer.
        kappa: how many times the core stands on the diagonal.
        sigma: relative error up to which images count as recovered; the paper takes 0.5.
        network_macs: of one forward pass on one image, if the network is known.
        images: how many are handed over, if that is known.
        tiles: sizes of the augmented layer, where blocks are tiles; None for blocks of rows.
    """

    layer: LayerSizes
    kappa: int = 1
    sigma: float = 0.5
    network_macs: int | None = None
    images: int | None = None
    tiles: TileSizes | None = None

    def __post_init__(self) -> None:
        if self.tiles is not None and self.kappa != self.tiles.tiles:
            raise ParameterError(f"{self.tiles.tiles} tiles say that kappa is as large: leave out kappa")
        for name in ("network_macs", "images"):
            if getattr(self, name) is not None:
                check_positive(**{name: getattr(self, name)})


def core_side(*, input_elements: int, kappa: int) -> int:
    """Side q of the core: alpha m^2 / kappa (equation 3).

    >>> core_side(input_elements=3072, kappa=3)
    1024
    """
    return block_size((input_elements,), kappa)


def check_positive(**values: int) -> None:
    """An error that names the first value that is not a positive whole number."""
    for name, value in values.items():
        if not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name.replace('_', ' ')} is {value!r}: give a positive whole number")


def check_sigma(sigma: float) -> None:
    """Refuse what cannot be the paper's privacy reservation: a relative error between 0 and 1."""
    if not 0 < sigma < 1:
        raise ParameterError(f"sigma = {sigma} is not a privacy reservation: give a number between 0 and 1")
