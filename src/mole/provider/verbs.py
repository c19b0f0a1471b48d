"""The provider's verbs, with a key: morph, unmorph, augment."""

import numpy.typing as npt

from mole.errors import ParameterError
from mole.provider.keys import MorphKey
from mole.scheme.augmented import AugmentedLayer, build_augmented_layer
from mole.scheme.first_layer import FirstLayer
from mole.scheme.shapes import Array


def morph(images: Array, key: MorphKey) -> Array:
    """Morphed data from plain data, (b, *input_shape), in the same shape and dtype.

    >>> import numpy as np
    >>> key = MorphKey.generate((1, 4, 4), insecure_seed=bytes(32))
    >>> images = np.ones((2, 1, 4, 4), dtype=np.float32)
    >>> bool(np.allclose(unmorph(morph(images, key), key), images, atol=1e-6))
    True
    """
    return key.morphing.morph(images)


def unmorph(morphed: Array, key: MorphKey) -> Array:
    """Plain data from morphed data: only the holder of the key can do this with certainty."""
    return key.morphing.unmorph(morphed)


def augment(layer: FirstLayer, key: MorphKey, *, dtype: npt.DTypeLike = "float32") -> AugmentedLayer:
    """The layer that gives the first layer's features on data morphed with this key.

    Its channels come in the key's secret order. `dtype` is how it is stored: 'float16' halves it.
    """
    if not isinstance(key, MorphKey):
        raise ParameterError(f"a {type(key).__name__} is no key: call augment(layer, key)")
    if not isinstance(layer, FirstLayer):
        raise ParameterError(f"a {type(layer).__name__} cannot be augmented: give a first layer")
    return build_augmented_layer(
        layer,
        key.morphing,
        key.channel_order(layer.channels),
        key_fingerprint=key.fingerprint,
        dtype=dtype,
    )
