"""Samples cut into the blocks that the core multiplies, as everybody who reads the manifest can."""

import numpy as np

from mole.attacks.attack import NotApplicableError
from mole.attacks.views import OutsiderView
from mole.geometry import Array, unroll


def blocks_of(view: OutsiderView, samples: Array) -> Array:
    """Samples as blocks in at least 32 bits: (n, *input_shape) to (n, kappa, q)."""
    if view.layout != "rows":
        raise NotApplicableError(f"this attack knows no layout '{view.layout}'")
    rows = unroll(samples)
    rows = rows.astype(np.float32) if rows.dtype.itemsize < 4 else rows
    return rows.reshape(len(rows), view.kappa, view.block)


def samples_of(view: OutsiderView, blocks: Array) -> Array:
    """Undo `blocks_of`: (n, kappa, q) to (n, *input_shape)."""
    return blocks.reshape(len(blocks), *view.input_shape)
