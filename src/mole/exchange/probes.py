"""Probes and witnesses: with them the developer can check, without the key, that all parts fit together.

Probes are a few made-up images, morphed, with their true features: the augmented layer must turn one into
the other. They prove the layer. A witness is a row of a shard with a few of its true features: the layer
must find these in the shard, too. It proves that the shard was made with the same key, and reveals
nothing new, because anyone with the layer and the row can compute those features.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.manifest import Manifest
from mole.exchange.shards import Encoding
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.shapes import Array, element_count
from mole.storage.checked import load_checked, write_checked
from mole.storage.stores import Store, stored_file

NAME = "probes.safetensors"
TENSORS = ("morphed", "features", "witness_shards", "witness_rows", "witness_positions", "witness_features")
POSITIONS = 64  # of a witness's features are shown
MAX_PROBE_ERROR = 0.1  # no delivery is made, or accepted, whose features are off by more
SPREAD = 10.0  # how far a row's error may lie above the average of the probes'
LEAST_ERROR = 1e-4  # what rounding may do on another machine
TELLS = 0.5  # share of a witness's features that may be off: under another key all of it is, and more
ROWS_AT_ONCE = 64


class Probes(NamedTuple):
    """Stored morphed rows, (n, elements), and true features, (n, *output_shape)."""

    stored: npt.NDArray[Any]
    features: Array


class Witnesses(NamedTuple):
    """One row per shard, with k of its features.

    Attributes:
        shards: number of the shard in the order of the manifest, (n,).
        rows: the row's id as a number, (n,).
        positions: which features of the flattened ones, (n, k).
        features: their true values, (n, k).
    """

    shards: npt.NDArray[np.int64]
    rows: npt.NDArray[np.uint64]
    positions: npt.NDArray[np.int64]
    features: Array

    def row_ids(self) -> dict[int, str]:
        """The witness of each shard by its number."""
        return {
            shard: f"{row:016x}"
            for shard, row in zip(self.shards.tolist(), self.rows.tolist(), strict=True)
        }


def probe_error(probes: Probes, augmented: AugmentedLayer, encoding: Encoding) -> float:
    """Relative error of the augmented layer's features on the probes."""
    with np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    ):  # what is no number is no small error
        ours = augmented.features(encoding.decode(probes.stored)).reshape(probes.features.shape)
        return float(np.linalg.norm(ours - probes.features) / np.linalg.norm(probes.features))


def tolerance(
    features: Array, rows: Array, probes: Probes, encoding: Encoding, error: float
) -> npt.NDArray[np.float64]:
    """How far k features, (n, k), of morphed rows, (n, elements), may be off: (n,).

    As far as the probes' are, and some more. The error of 8-bit data is the same for every row; that of
    floats grows with the row.
    """
    probe_rows = encoding.decode(probes.stored)
    growth = np.ones(len(rows))
    if encoding.scales is None:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            growth = np.maximum(1, root_mean_square(rows) / root_mean_square(probe_rows.reshape(1, -1)))
    scale = growth * root_mean_square(probes.features.reshape(1, -1))
    allowed: npt.NDArray[np.float64] = np.maximum(scale, root_mean_square(features))
    return max(SPREAD * error, LEAST_ERROR) * allowed


def telling(witnesses: Witnesses, augmented: AugmentedLayer) -> npt.NDArray[np.float64]:
    """How far off each witness's features may be at most, (n,), so that another key's would not pass."""
    bias = np.zeros(augmented.output_shape[0]) if augmented.bias is None else augmented.bias
    channels = witnesses.positions // element_count(augmented.output_shape[1:])
    return TELLS * root_mean_square(witnesses.features - bias[channels])


def deviation(witnesses: Witnesses, rows: Array, augmented: AugmentedLayer) -> npt.NDArray[np.float64]:
    """How far the layer's features of the witnesses' morphed rows, (n, elements), are off: (n,)."""
    found = np.empty(witnesses.features.shape, np.float64)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        with np.errstate(over="ignore", invalid="ignore"):
            features = augmented.features(rows[part]).reshape(len(rows[part]), -1)
        found[part] = np.take_along_axis(features, witnesses.positions[part], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        return root_mean_square(found - witnesses.features)


def root_mean_square(rows: Array) -> npt.NDArray[np.float64]:
    """Of each row, (n, k) to (n,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean: npt.NDArray[np.float64] = np.square(rows.astype(np.float64)).mean(axis=1)
    return np.sqrt(mean)


def save_probes(probes: Probes, witnesses: Witnesses, store: Store) -> None:
    """Write probes and witnesses into a delivery."""
    tensors = dict(zip(TENSORS, (*probes, *witnesses), strict=True))
    metadata = {"format": "mole-probes", "version": "2"}
    store.make(NAME, lambda path: write_checked(path, tensors, metadata))


def load_probes(store: Store, manifest: Manifest) -> tuple[Probes, Witnesses]:
    """Read the probes and witnesses of a delivery; an error if they cannot be what they should."""
    tensors, _ = load_checked(stored_file(store, NAME))
    if set(tensors) == set(TENSORS) and all(tensor.ndim for tensor in tensors.values()):
        found: list[npt.NDArray[Any]] = [tensors[name] for name in TENSORS]
        probes, witnesses = Probes(*found[:2]), Witnesses(*found[2:])
        if _are_probes(probes, manifest) and _are_witnesses(witnesses, manifest):
            return probes, witnesses
    raise DeliveryError(f"{store.label}/{NAME} does not hold probes: get the delivery again")


def _are_probes(probes: Probes, manifest: Manifest) -> bool:
    count = len(probes.features)
    shapes = ((count, element_count(manifest.input_shape)), (count, *manifest.output_shape))
    return count > 0 and (probes.stored.shape, probes.features.shape) == shapes


def _are_witnesses(witnesses: Witnesses, manifest: Manifest) -> bool:
    shards, rows, positions, features = witnesses
    limits = (sum(split.shards for split in manifest.splits.values()), element_count(manifest.output_shape))
    return (
        "".join(array.dtype.kind for array in witnesses) == "iuif"
        and rows.shape == shards.shape == (len(shards),)
        and positions.shape == features.shape == (len(shards), *positions.shape[1:])
        and positions.shape[1:] == (POSITIONS,)
        and all(
            ((array >= 0) & (array < limit)).all()
            for array, limit in zip((shards, positions), limits, strict=True)
        )
    )
