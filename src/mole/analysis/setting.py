"""A setting: what the analysis is about."""

from dataclasses import dataclass

from mole.analysis.sizes import LayerSizes, check_positive


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
    """

    layer: LayerSizes
    kappa: int = 1
    sigma: float = 0.5
    network_macs: int | None = None
    images: int | None = None

    def __post_init__(self) -> None:
        for name in ("network_macs", "images"):
            if getattr(self, name) is not None:
                check_positive(**{name: getattr(self, name)})
