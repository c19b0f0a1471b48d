"""Small keys to save and open again, and what opens them."""

import numpy as np
import pyrage

import mole

SEED = bytes(range(32))
IDENTITY = pyrage.x25519.Identity.generate()
RECIPIENT = str(IDENTITY.to_public())


def small_key() -> mole.MorphKey:
    """A key that is the same in every run."""
    return mole.MorphKey.generate((1, 4, 4), kappa=2, insecure_seed=SEED)


def same(one: mole.MorphKey, other: mole.MorphKey) -> bool:
    """Whether two keys morph alike."""
    return (
        one.fingerprint == other.fingerprint
        and np.array_equal(one.morphing.core.matrix, other.morphing.core.matrix)
        and np.array_equal(one.channel_order(9), other.channel_order(9))
    )
