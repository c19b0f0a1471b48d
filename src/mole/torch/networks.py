"""Networks to start with: two that train on a couple of CPU cores, the paper's VGG-16, and a linear head.

Each is built for an input shape and a number of classes, and begins with a layer that an augmented one can
replace: a convolution of images, or a turn of features.
"""

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from mole.errors import ParameterError
from mole.exchange.head_checkpoint import LINEAR_HEAD
from mole.scheme.shapes import Shape, check_shape, element_count, shape_text

MOST_FEATURES = 1 << 12  # of a linear head: a square of these is 64 MB
POOL = 0  # in a list of widths: halve the image
SMALL_VGG = (16, 32, POOL, 64, POOL, 64, POOL)
VGG16 = (64, 64, POOL, 128, 128, POOL, 256, 256, 256, POOL, 512, 512, 512, POOL, 512, 512, 512, POOL)


def build_network(name: str, input_shape: Shape, classes: int) -> nn.Module:
    """A built-in network by its name.

    >>> build_network("small_vgg", (1, 28, 28), 10)[0]
    Conv2d(1, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    """
    if name not in NETWORKS:
        raise ParameterError(f"there is no built-in network '{name}': use {', '.join(NETWORKS)}")
    return NETWORKS[name](input_shape, classes)


def small_vgg(input_shape: Shape, classes: int) -> nn.Sequential:
    """Four convolutions: 9 million multiplications at 1x28x28."""
    channels = _check(input_shape, classes, smallest=8)
    head = [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(4 * 64, classes)]
    return nn.Sequential(*_convolutions(channels, SMALL_VGG), *head)


def small_resnet(input_shape: Shape, classes: int) -> nn.Sequential:
    """Three residual blocks: 9 million multiplications at 1x28x28."""
    channels = _check(input_shape, classes, smallest=8)
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        ResidualBlock(16, 16, stride=1),
        ResidualBlock(16, 32, stride=2),
        ResidualBlock(32, 64, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


def vgg16(input_shape: Shape, classes: int, *, narrower: int = 1) -> nn.Sequential:
    """VGG-16 for images of 32x32: 13 convolutions, and 3 linear layers with a dropout of 0.5.

    Convolutions can be narrower by a factor, for machines that would take weeks. Linear layers stay as they
    are: they cost little, and a dropout of 0.5 leaves too little of narrow ones.
    """
    channels = _check(input_shape, classes, smallest=32)
    widths = [width // narrower for width in VGG16]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    for features in (widths[-2], 512):
        head += [nn.Linear(features, 512), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*_convolutions(channels, widths), *head, nn.Linear(512, classes))


def linear_head(input_shape: Shape, classes: int) -> nn.Sequential:
    """A linear classifier of features, for protected deliveries: its first layer only turns them.

    What an orthogonal layer is given can be told from what it gives, so nothing is lost, and noise that is
    the same in all directions stays so.
    """
    features = element_count(check_shape(input_shape))
    if features > MOST_FEATURES:
        raise ParameterError(
            f"samples of {features:,} numbers do not fit this network: it takes up to {MOST_FEATURES:,} "
            "features of a front"
        )
    if classes < 2:
        raise ParameterError(f"a network for {classes} classes has nothing to learn: give at least 2")
    turn = nn.Linear(features, features, bias=False)
    nn.init.orthogonal_(turn.weight)
    return nn.Sequential(nn.Flatten(), turn, nn.Linear(features, classes))


class ResidualBlock(nn.Module):
    """Two convolutions, and a shortcut around them."""

    def __init__(self, inputs: int, outputs: int, *, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.around: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.around = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, features: Tensor) -> Tensor:
        """Features to features, smaller by the stride."""
        out: Tensor = nn.functional.relu(self.branch(features) + self.around(features))
        return out


def _convolutions(channels: int, widths: Sequence[int]) -> list[nn.Module]:
    """Convolutions with batch normalisation, without which 13 of them in a row hardly learn."""
    layers: list[nn.Module] = []
    for width in widths:
        if width == POOL:
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
    return layers


def _check(input_shape: Shape, classes: int, *, smallest: int) -> int:
    """The number of input channels, or an error where the network cannot be built."""
    shape = check_shape(input_shape)
    if len(shape) != 3 or min(shape[1:]) < smallest:
        raise ParameterError(
            f"a sample of shape {shape_text(shape)} does not fit this network: it takes images "
            f"of at least {smallest}x{smallest}, as channels x height x width"
        )
    if classes < 2:
        raise ParameterError(f"a network for {classes} classes has nothing to learn: give at least 2")
    return shape[0]


NETWORKS: dict[str, Callable[[Shape, int], nn.Module]] = {
    "small_vgg": small_vgg,
    "small_resnet": small_resnet,
    "vgg16": vgg16,
    LINEAR_HEAD: linear_head,
}
