"""Makes probes and witnesses, with the key. `mole.exchange.probes` says what they are for."""

from collections.abc import Mapping

import numpy as np

from mole.exchange.probes import Probes, Witnesses, root_mean_square, tolerance
from mole.exchange.shard_files import ShardFacts
from mole.exchange.shards import LEVELS, Encoding
from mole.provider.keys import MorphKey
from mole.provider.plan import ShardJob
from mole.provider.shard_maker import ShardMaker
from mole.scheme.convolution import features_of
from mole.scheme.shapes import Array, Shape, element_count

COUNT = 8
COARSE = 4
POSITIONS = 64
TRIES = 4


def unclipped(plain: Array, morphed: Array, scales: Array) -> tuple[Array, Array]:
    """Made-up images, (n, *input_shape), and their morphed rows, so faint that 8 bits clip nothing."""
    largest = np.abs(morphed / scales).max(axis=1)
    shrink = np.minimum(1, 0.9 * LEVELS / largest).astype(np.float32)
    return plain * shrink.reshape(-1, *(1,) * (plain.ndim - 1)), morphed * shrink[:, np.newaxis]


class WitnessMaker:
    """Finds a witness for every shard, in the source once more: what was written is not trusted."""

    def __init__(self, maker: ShardMaker, encoding: Encoding, probes: Probes) -> None:
        self._maker, self._encoding, self._probes = maker, encoding, probes
        self._layer = layer = maker.plan.layer
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
            for row_id in facts.row_ids[:TRIES]:
                true = self._features(job, row_id, where, error)
                if true is not None:
                    numbers.append(number)
                    rows.append(int(row_id, 16))
                    positions.append(where)
                    features.append(true)
                    break
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

    def _features(self, job: ShardJob, row_id: str, where: list[int], error: float) -> Array | None:
        """True features of a row at some positions; None if they would not tell one key from another.

        Those of an all-black image would not, nor those of a row that 8 bits clipped.
        """
        plain = self._maker.read_row(job, row_id)
        morphed = self._maker.morphed(plain)
        if self._encoding.scales is not None and np.abs(morphed / self._encoding.scales).max() > LEVELS:
            return None
        true = features_of(self._layer, plain, channel_order=self._order).reshape(1, -1)[:, where]
        allowed = tolerance(true, morphed, self._probes, self._encoding, error)
        linear = root_mean_square(true - self._bias[where])
        return true[0] if 2 * allowed[0] <= linear[0] else None


def smooth_images(key: MorphKey, shape: Shape) -> Array:
    """Coarse random patterns, the same ones every time, stretched along the last two axes."""
    sides = [min(COARSE, side) for side in shape[-2:]]
    coarse = key.stream("probes").normals(COUNT * element_count((*shape[:-2], *sides)))
    images = coarse.reshape(COUNT, *shape[:-2], *sides)
    for axis, side in zip(range(-len(sides), 0), shape[-2:], strict=True):
        images = np.repeat(images, -(-side // images.shape[axis]), axis=axis)
        images = np.take(images, range(side), axis=axis)
    return np.ascontiguousarray(images, dtype=np.float32)
