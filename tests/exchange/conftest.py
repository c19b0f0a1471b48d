"""Layers that files are made of."""

import numpy as np
import pytest

import mole


@pytest.fixture
def layer(rng) -> mole.FirstLayer:
    return mole.FirstLayer.conv(
        rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        rng.normal(size=4).astype(np.float32),
        input_shape=(3, 6, 7),
        stride=(1, 2),
        padding=((0, 1), (2, 1)),
        normalisation=mole.Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
    )


@pytest.fixture
def augmented(layer) -> mole.AugmentedLayer:
    return mole.augment(layer, mole.MorphKey.generate((3, 6, 7), kappa=2, insecure_seed=bytes(32)))


@pytest.fixture
def factored(layer) -> mole.AugmentedLayer:
    key = mole.MorphKey.generate((3, 6, 7), kappa=2, insecure_seed=bytes(32))
    return mole.augment(layer, key, form="factored")
