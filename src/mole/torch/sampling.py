"""Shuffle a data set that lies in shards, without jumping from file to file."""

from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import Sampler


class ShardSampler(Sampler[int]):
    """Every row once, in a new random order each time: shards are shuffled, and rows within a few shards.

    The provider shuffled the rows before they were cut into shards, so that any few shards are a fair
    sample of all.

    >>> sampler = ShardSampler([2, 3], seed=0, shards_at_once=1)
    >>> sorted(sampler), list(sampler) == list(sampler)
    ([0, 1, 2, 3, 4], False)
    """

    def __init__(self, rows: Sequence[int], *, seed: int, shards_at_once: int) -> None:
        """Make the sampler.

        Args:
            rows: rows of each shard.
            seed: the same seed gives the same orders, pass after pass.
            shards_at_once: how many shards to mix.
        """
        self._starts = torch.tensor([0, *rows]).cumsum(0).tolist()
        self._shards_at_once = max(1, shards_at_once)
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __iter__(self) -> Iterator[int]:
        shards = torch.randperm(len(self._starts) - 1, generator=self.generator)
        for window in shards.split(self._shards_at_once):
            spans = [
                torch.arange(self._starts[shard], self._starts[shard + 1]) for shard in window.tolist()
            ]
            rows = torch.cat(spans)
            yield from rows[torch.randperm(len(rows), generator=self.generator)].tolist()
