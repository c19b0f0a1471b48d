"""What the paper promises against each attack, for this layer and key."""

from collections.abc import Mapping

from mole.analysis import LayerSizes, Setting, figures_of
from mole.layer import FirstLayer

FIGURES = {
    "brute-force-core": "core guess",
    "channel-search": "channel order guess",
    "channel-fingerprint": "channel order guess",
    "reversing": "reversing guess",
    "known-pairs": "pairs",
}


def published_bounds(layer: FirstLayer, kappa: int) -> Mapping[str, str]:
    """The published figure by name of attack, in words; attacks that the paper does not know have none."""
    setting = Setting(layer=LayerSizes.of(layer), kappa=kappa)
    figures = {figure.name: figure for figure in figures_of(setting)}
    return {
        attack: f"{figures[name].what}: {figures[name].words('by_formula')}"
        for attack, name in FIGURES.items()
        if name in figures
    }
