"""Probes: a few made-up images, morphed, with their true features.

With them the developer can prove, without the key, that the augmented layer fits the data: the layer
must turn the stored probes into the stored features. The images themselves stay with the provider.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.augmented import AugmentedLayer
from mole.convolve import features_of
from mole.data.encoding import LEVELS, Encoding
from mole.delivery.artefacts import local_copy
from mole.errors import DeliveryError
from mole.files.sealed import load_sealed, save_sealed
from mole.files.store import Store
from mole.geometry import Array, Shape, element_count, unroll
from mole.keys import MorphKey
from mole.layer import FirstLayer

NAME = "probes.safetensors"
COUNT = 8
COARSE = 4


class Probes(NamedTuple):
    """Stored morphed rows, (n, elements), and true features, (n, *output_shape)."""

    stored: npt.NDArray[Any]
    features: Array


def make_probes(layer: FirstLayer, key: MorphKey, encoding: Encoding) -> Probes:
    """Probes for a layer and a key, the same ones every time."""
    plain = _smooth_images(key, layer.input_shape)
    morphed = unroll(key.morphing.morph(plain))
    if encoding.scales is not None:  # small enough that nothing is clipped
        largest = np.abs(morphed / encoding.scales).max(axis=1)
        shrink = np.minimum(1, 0.9 * LEVELS / largest).astype(np.float32)
        plain = plain * shrink.reshape(-1, *(1,) * (plain.ndim - 1))
        morphed = morphed * shrink[:, np.newaxis]
    features = features_of(layer, plain, channel_order=key.channel_order(layer.channels))
    return Probes(encoding.encode(morphed), features.astype(np.float32))


def probe_error(probes: Probes, augmented: AugmentedLayer, encoding: Encoding) -> float:
    """Relative error of the augmented layer's features on the probes."""
    ours = augmented.features(encoding.decode(probes.stored)).reshape(probes.features.shape)
    return float(np.linalg.norm(ours - probes.features) / np.linalg.norm(probes.features))


def save_probes(probes: Probes, store: Store) -> None:
    """Write the probes into a delivery."""
    tensors = {"morphed": probes.stored, "features": probes.features}
    metadata = {"format": "mole-probes", "version": "1"}
    store.make(NAME, lambda path: save_sealed(path, tensors, metadata))


def load_probes(store: Store) -> Probes:
    """Read the probes of a delivery."""
    with local_copy(store, NAME) as path:
        tensors, _ = load_sealed(path)
    if set(tensors) != {"morphed", "features"}:
        raise DeliveryError(f"{store.shown}/{NAME} does not hold probes: get the delivery again")
    return Probes(tensors["morphed"], tensors["features"])


def _smooth_images(key: MorphKey, shape: Shape) -> Array:
    """Coarse random patterns, stretched to the sample's shape along its last two axes."""
    sides = [min(COARSE, side) for side in shape[-2:]]
    coarse = key.normal_numbers("probes", COUNT * element_count((*shape[:-2], *sides)))
    images = coarse.reshape(COUNT, *shape[:-2], *sides)
    for axis, side in zip(range(-len(sides), 0), shape[-2:], strict=True):
        images = np.repeat(images, -(-side // images.shape[axis]), axis=axis)
        images = np.take(images, range(side), axis=axis)
    return np.ascontiguousarray(images, dtype=np.float32)
