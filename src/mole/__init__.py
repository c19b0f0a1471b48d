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

With files, the same in four calls (see the README):

    mole.deliver("photos", layer, key, "delivery", dtype="int8", resize="crop")
    delivery = mole.Delivery.open("delivery")
    mole.verify(delivery)
    mole.audit(delivery, key=key, layer=layer, truth="photos").save("audit")

`mole.torch` is the developer's side: it puts an augmented layer into a PyTorch model and trains on a
delivery. The pieces of the scheme, for teaching and for tests, are in `mole.scheme`. Everything is loaded
when it is first used, so that a command can answer, and be interrupted, before NumPy is there.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mole._version import __version__ as __version__
from mole.errors import MoleError as MoleError

if TYPE_CHECKING:
    from mole import torch as torch
    from mole.audit.run import audit as audit
    from mole.exchange.decoding import decode as decode
    from mole.exchange.delivery import Delivery as Delivery
    from mole.exchange.layer_files import load as load
    from mole.exchange.layer_files import save as save
    from mole.exchange.verify import verify as verify
    from mole.provider.client import Client as Client
    from mole.provider.deliver import deliver as deliver
    from mole.provider.keys import MorphKey as MorphKey
    from mole.provider.keys.key import augment as augment
    from mole.provider.keys.key import morph as morph
    from mole.provider.keys.key import unmorph as unmorph
    from mole.provider.protect import Protect as Protect
    from mole.provider.recover import recover as recover
    from mole.scheme.augmented import AugmentedLayer as AugmentedLayer
    from mole.scheme.first_layer import FirstLayer as FirstLayer
    from mole.scheme.normalisation import Normalisation as Normalisation
    from mole.sources.opening import open_source as open_source

_HOMES = {
    "AugmentedLayer": "scheme.augmented",
    "Client": "provider.client",
    "Delivery": "exchange.delivery",
    "FirstLayer": "scheme.first_layer",
    "MorphKey": "provider.keys",
    "Normalisation": "scheme.normalisation",
    "Protect": "provider.protect",
    "augment": "provider.keys.key",
    "decode": "exchange.decoding",
    "deliver": "provider.deliver",
    "load": "exchange.layer_files",
    "morph": "provider.keys.key",
    "open_source": "sources.opening",
    "recover": "provider.recover",
    "save": "exchange.layer_files",
    "unmorph": "provider.keys.key",
    "verify": "exchange.verify",
}
_PACKAGES = ("audit", "torch")  # the first is also a function: it can be called

__all__ = ["MoleError", "__version__", "audit", *_HOMES]  # noqa: PLE0604  (all of them are names)


def __getattr__(name: str) -> Any:
    """Load a name's home, or one of the packages, at first use."""
    if name in _PACKAGES:
        return importlib.import_module(f"mole.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'mole' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"mole.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "torch"]
