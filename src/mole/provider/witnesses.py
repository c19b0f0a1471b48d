"""Makes probes and witnesses, with the key. `mole.exchange.probes` says what they are for."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from mole.exchange.delivery import AUGMENTED
from mole.exchange.layer_files import load_augmented_layer
from mole.exchange.probes import POSITIONS, TELLS, Probes, Witnesses, root_mean_square, tolerance
from mole.exchange.shard_files import ShardFacts, ShardFile
from mole.exchange.shards import LEVELS, Encoding
from mole.provider.keys import MorphKey
from mole.provider.plan import ShardJob
from mole.provider.shard_maker import ShardMaker
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.convolution import features_of
from mole.scheme.filling import without_filling
from mole.scheme.shapes import Array, Shape, element_count, roll
from mole.storage.stores import Store, stored_file

COUNT = 8
COARSE = 4
TRIES = 4  # rows that are looked at first
STRONGEST = 16  # rows that are tried on the layer itself, where those cannot tell


def unclipped(plain: Array, morphed: Array, scales: Array) -> tuple[Array, Array]:
    """Made-up images, (n, *input_shape), and their morphed rows, so faint that 8 bits clip nothing."""
    largest = np.abs(morphed / scales).max(axis=1)
    shrink = np.minimum(1, 0.9 * LEVELS / largest).astype(np.float32)
    return plain * shrink.reshape(-1, *(1,) * (plain.ndim - 1)), morphed * shrink[:, np.newaxis]


class WitnessMaker:
    """Finds a witness for every shard, in the source once more: what was written is not trusted.

    Of a protected delivery the rows themselves serve: nothing else may be made from its images.

    One of a shard's first rows serves, if no error that 8 or 16 bits could make would hide another key.
    That bound is a wide one: where none of them serves, the strongest rows are tried on the augmented
    layer itself, to see how far off their features really are.
    """

    def __init__(self, maker: ShardMaker, encoding: Encoding, probes: Probes, store: Store) -> None:
        self._maker, self._encoding, self._probes, self._store = maker, encoding, probes, store
        self._layer = layer = maker.plan.layer
        self._is_protected = maker.plan.protection is not None
        self._order = maker.key.channel_order(layer.channels)
        bias = np.zeros(layer.channels) if layer.bias is None else layer.bias[self._order]
        self._bias = np.repeat(bias.astype(np.float32), element_count(layer.output_grid))

    def make(self, shards: Mapping[ShardJob, ShardFacts], error: float) -> Witnesses:
        """A witness for each shard that has a row which can tell, found by the ids of its rows.

        `error` is that of the probes.
        """
        numbers, rows, positions, features = [], [], [], []
        for number, (job, facts) in enumerate(shards.items()):
            where = self._positions(job)
            found = None if self._is_protected else self._first(job, facts, where, error)
            found = found or self._strongest(job, where)
            if found is not None:
                row_id, true = found
                numbers.append(number)
                rows.append(int(row_id, 16))
                positions.append(where)
                features.append(true)
        return Witnesses(
            np.array(numbers, np.int64),
            np.array(rows, np.uint64),
            np.array(positions, np.int64).reshape(-1, POSITIONS),
            np.array(features, np.float32).reshape(-1, POSITIONS),
        )

    def _positions(self, job: ShardJob) -> list[int]:
        """Which features are shown of a shard's witness."""
        stream = self._maker.key.stream(f"witnesses/{self._maker.plan.delivery_id}/{job.name}")
        return stream.below(len(self._bias), POSITIONS)

    def _first(
        self, job: ShardJob, facts: ShardFacts, where: list[int], error: float
    ) -> tuple[str, Array] | None:
        """The first row that tells by the bound, and its features; a row that 8 bits clipped does not."""
        for row_id in facts.row_ids[:TRIES]:
            plain = self._maker.read_row(job, row_id)
            morphed = self._maker.morphed(plain)
            if self._encoding.scales is not None and np.abs(morphed / self._encoding.scales).max() > LEVELS:
                continue
            true = self._features(plain, where)
            allowed = tolerance(true, morphed, self._probes, self._encoding, error)
            if allowed[0] <= TELLS * self._linear(true, where):
                return row_id, true[0]
        return None

    def _strongest(self, job: ShardJob, where: list[int]) -> tuple[str, Array] | None:
        """The row that tells best, of those with the largest values, and its features; None if none does.

        Rows of zeros tell nothing: they are the same under every key.
        """
        shard = ShardFile(self._store, job.name).read(self._maker.plan.input_shape, self._encoding.dtype)
        rows = self._encoding.decode(shard.values)
        best, best_share = None, TELLS / 2  # well inside what is allowed later
        for index in np.argsort(-root_mean_square(rows), kind="stable")[:STRONGEST].tolist():
            row = rows[index : index + 1]
            true = self._features(self._plain(job, shard.row_ids[index], row), where)
            found = self._augmented.features(row).reshape(1, -1)[:, where]
            linear = self._linear(true, where)
            off = float(root_mean_square(found - true)[0])
            if linear > 0 and off <= best_share * linear:
                best, best_share = (shard.row_ids[index], true[0]), off / linear
        return best

    def _plain(self, job: ShardJob, row_id: str, morphed: Array) -> Array:
        """Plain data of a row, (1, *shape): from the source, or of a protected one what left of it.

        The noise of a protected row is nowhere else, and its image must not be asked for a second time.
        """
        if self._is_protected:
            filled = roll(self._maker.key.morphing.unmorph(morphed), self._maker.plan.input_shape)
            return without_filling(filled, self._layer.input_shape)
        return self._maker.read_row(job, row_id)

    @cached_property
    def _augmented(self) -> AugmentedLayer:
        return load_augmented_layer(stored_file(self._store, AUGMENTED))

    def _features(self, plain: Array, where: list[int]) -> Array:
        """True features of a row at some positions, (1, k)."""
        seen = self._maker.key.morphing.arranged(plain)
        features: Array = features_of(self._layer, seen, channel_order=self._order).reshape(1, -1)
        return features[:, where]

    def _linear(self, true: Array, where: list[int]) -> float:
        """How large features are without the bias, which says nothing about the key."""
        return float(root_mean_square(true - self._bias[where])[0])


def smooth_images(key: MorphKey, shape: Shape) -> Array:
    """Coarse random patterns, the same ones every time, stretched along the last two axes."""
    sides = [min(COARSE, side) for side in shape[-2:]]
    coarse = key.stream("probes").normals(COUNT * element_count((*shape[:-2], *sides)))
    images = coarse.reshape(COUNT, *shape[:-2], *sides)
    for axis, side in zip(range(-len(sides), 0), shape[-2:], strict=True):
        images = np.repeat(images, -(-side // images.shape[axis]), axis=axis)
        images = np.take(images, range(side), axis=axis)
    return np.ascontiguousarray(images, dtype=np.float32)
