"""The paper's two settings, with the numbers that it prints for them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mole.analysis.figure import Figure
from mole.analysis.figures import figures_of
from mole.analysis.sizes import LayerSizes, Setting
from mole.analysis.tile_sizes import TileSizes

# Counted from the networks themselves (10 and 1000 classes) by `mole.torch.macs`; a test counts them again.
VGG16_MACS = 313_725_952
RESNET152_MACS = 11_513_626_624

VGG16_FIRST: Mapping[str, Any] = {"input_shape": (3, 32, 32), "channels": 64, "kernel": 3, "padding": 1}
RESNET152_FIRST: Mapping[str, Any] = {
    "input_shape": (3, 224, 224), "channels": 64, "kernel": 7, "stride": 2, "padding": 3,
}  # fmt: skip

CIFAR_IMAGES = 60_000
IMAGENET_1K_IMAGES = 1_281_167


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A setting of the paper's.

    >>> figures = {figure.name: figure for figure in PRESETS["cifar-vgg16"].figures()}
    >>> [figures["inference share"].words(which) for which in ("published", "by_formula", "counted")]
    ['9 %', '63.6 %', '63.6 %']

    Attributes:
        what: the setting in words.
        first_layer: its convolution.
        setting: its numbers.
        printed: for each figure that the paper prints, by name, the number and a remark.
        others: figures that the paper prints about other methods.
    """

    what: str
    first_layer: Mapping[str, Any]
    setting: Setting
    printed: Mapping[str, tuple[float, str]]
    others: tuple[Figure, ...] = ()

    def in_tiles(self, tile: int) -> Setting:
        """The same setting with tiles of this side, of which the paper says nothing.

        >>> PRESETS["cifar-vgg16"].in_tiles(4).kappa
        64
        """
        tiles = TileSizes.conv(**self.first_layer, tile=tile)
        return replace(self.setting, kappa=tiles.tiles, tiles=tiles)

    def figures(self) -> tuple[Figure, ...]:
        """Every figure of the setting, beside what the paper prints."""
        return (
            *(
                figure.printed_as(*self.printed[figure.name]) if figure.name in self.printed else figure
                for figure in figures_of(self.setting)
            ),
            *self.others,
        )


CIFAR_VGG16 = Preset(
    what="VGG-16 on CIFAR",
    first_layer=VGG16_FIRST,
    setting=Setting(
        layer=LayerSizes.conv(**VGG16_FIRST),
        network_macs=VGG16_MACS,
        images=CIFAR_IMAGES,
    ),
    printed={
        "core guess": (-9e6, ""),
        "channel order guess": (math.log10(7.9e-90), ""),
        "reversing guess": (-6e6, ""),
        "pairs": (3072, ""),
        "inference share": (0.09, "9 % is what equation 16, the provider's cost, gives"),
        "data share": (0.0512, "of 60,000 images"),
    },
    others=(
        Figure(
            name="gazelle guess",
            what="chance of an attack on GAZELLE, for comparison",
            unit="log10",
            equation="abstract",
            published=math.log10(2.9e-30),
            counted=-128 * math.log10(2),
            remark="the paper's Table 1 has 2.9e-39, which is 2^-128",
        ),
        Figure(
            name="features share",
            what="first layer's features over the images, for comparison",
            unit="share",
            equation="Table 1",
            published=64,
            counted=64 * 32**2 / (3 * 32**2),
            remark="64 values for each position, where an image has 3",
        ),
    ),
)

IMAGENET_RESNET152 = Preset(
    what="ResNet-152 on ImageNet",
    first_layer=RESNET152_FIRST,
    setting=Setting(
        layer=LayerSizes.conv(**RESNET152_FIRST),
        network_macs=RESNET152_MACS,
        images=IMAGENET_1K_IMAGES,
    ),
    printed={
        "reversing guess": (
            -7.5e9,
            "7.5 x 10^9 is (alpha m^2)^2 / 3, and equation 14 gives another number",
        ),
        "inference share": (10, ""),
        "data share": (0.01, "of the 1,281,167 images of ImageNet-1k; 1 % is right for 14 million"),
    },
)

PRESETS: Mapping[str, Preset] = {"cifar-vgg16": CIFAR_VGG16, "imagenet-resnet152": IMAGENET_RESNET152}
