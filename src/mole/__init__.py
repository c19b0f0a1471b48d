"""Morphed Learning: hand over images as morphed data, with a layer that understands them.

>>> import numpy as np
>>> import mole
>>> rng = np.random.default_rng(0)
>>> images = rng.normal(size=(8, 3, 8, 8))
>>> kernels = rng.normal(size=(4, 3, 3, 3))
>>> layer = mole.FirstLayer.conv(kernels, None, input_shape=(3, 8, 8), padding=1)
>>> key = mole.MorphKey.generate(layer.input_shape)      # the provider's secret
>>> morphed = mole.morph(images, key)                    # looks like noise
>>> augmented = mole.augment(layer, key)                 # gives the layer's features all the same
>>> augmented.features(morphed).shape
(8, 4, 8, 8)

`mole.torch` puts an augmented layer into a PyTorch model. Everything is loaded when it is first used, so
that a command can answer, and be interrupted, before NumPy is there.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mole._version import __version__
from mole.errors import MoleError

if TYPE_CHECKING:
    from mole import torch as torch
    from mole.exchange.layer_files import load, save
    from mole.provider.keys import MorphKey
    from mole.provider.verbs import augment, morph, unmorph
    from mole.scheme.augmented import AugmentedLayer
    from mole.scheme.first_layer import FirstLayer
    from mole.scheme.layer_matrix import layer_matrix, sparse_layer_matrix
    from mole.scheme.normalisation import Normalisation
    from mole.scheme.shapes import roll, unroll, valid_kappas

__all__ = [
    "AugmentedLayer",
    "FirstLayer",
    "MoleError",
    "MorphKey",
    "Normalisation",
    "__version__",
    "augment",
    "layer_matrix",
    "load",
    "morph",
    "roll",
    "save",
    "sparse_layer_matrix",
    "unmorph",
    "unroll",
    "valid_kappas",
]

_HOMES = {
    "AugmentedLayer": "scheme.augmented",
    "FirstLayer": "scheme.first_layer",
    "MorphKey": "provider.keys",
    "Normalisation": "scheme.normalisation",
    "augment": "provider.verbs",
    "layer_matrix": "scheme.layer_matrix",
    "load": "exchange.layer_files",
    "morph": "provider.verbs",
    "roll": "scheme.shapes",
    "save": "exchange.layer_files",
    "sparse_layer_matrix": "scheme.layer_matrix",
    "unmorph": "provider.verbs",
    "unroll": "scheme.shapes",
    "valid_kappas": "scheme.shapes",
}


def __getattr__(name: str) -> Any:
    """Load a name's home, or `mole.torch`, at first use."""
    if name == "torch":
        return importlib.import_module("mole.torch")
    if name not in _HOMES:
        raise AttributeError(f"module 'mole' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"mole.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "torch"]
