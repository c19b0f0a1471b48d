"""Data morphing: secret cores and the block-diagonal product (paper, section 3.2)."""

from mole.morphing.cores import CORE_KINDS, Core, gaussian_core, orthogonal_core, whitened_core
from mole.morphing.morphing import LAYOUTS, Morphing
from mole.morphing.whitening import Whitening

__all__ = [
    "CORE_KINDS",
    "LAYOUTS",
    "Core",
    "Morphing",
    "Whitening",
    "gaussian_core",
    "orthogonal_core",
    "whitened_core",
]
