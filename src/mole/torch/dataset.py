"""A delivery as a PyTorch data set."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.foreign_text import shown
from mole.scheme.shapes import Shape, element_count, shape_text
from mole.storage.identities import Identity
from mole.torch.batches import LABELS, SAMPLES
from mole.torch.shard_cache import ShardCache

CACHE_BYTES = 1 << 30

Item = tuple[Tensor, int] | Tensor | dict[str, Tensor | int]


class ShardSampler(Sampler[int]):
    """Every row once, in a new random order each time: shards are shuffled, and rows within a few shards.

    The provider shuffled the rows before cutting them into shards, so any few shards are a fair sample of
    all rows.

    >>> sampler = ShardSampler([2, 3], seed=0, shards_at_once=1)
    >>> sorted(sampler), list(sampler) == list(sampler)
    ([0, 1, 2, 3, 4], False)
    """

    def __init__(self, rows: Sequence[int], *, seed: int, shards_at_once: int) -> None:
        """Make the sampler.

        Args:
            rows: the number of rows in each shard.
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


class MorphedDataset(Dataset[Item]):
    """The rows of one split: a morphed sample, float32 of the delivery's shape, and its label.

        dataset = MorphedDataset("delivery", "train")
        loader = DataLoader(dataset, batch_size=64, sampler=dataset.sampler(seed=0), num_workers=2)
        for samples, labels in loader: ...

    Without labels an item is the sample alone. With `as_dict=True` items are dictionaries of `pixel_values`
    and `labels`, which `transformers.Trainer` takes as they are.

    Rows are read shard by shard, and the most recently used shards stay in memory, so a delivery may be
    larger than memory. Use `sampler=dataset.sampler(seed=...)`
    rather than `shuffle=True`: where a split exceeds `cache_bytes`, a shuffle across all shards would
    read a whole shard for nearly every row. Batches are fetched in one go. Each worker of a `DataLoader`
    opens the files itself and keeps its own shards in memory. The data set of a sealed delivery cannot be
    pickled or copied otherwise: the pickle would hold the identity.

    Checksums are not checked here: that is what `mole verify` is for, once.

    Attributes:
        split: the name of the split.
        as_dict: whether items are dictionaries.
    """

    def __init__(
        self,
        delivery: str | PathLike[str] | Delivery,
        split: str = "train",
        *,
        identity: Identity | None = None,
        cache_bytes: int = CACHE_BYTES,
        as_dict: bool = False,
    ) -> None:
        """Open a split.

        Args:
            delivery: an opened delivery, or its folder or fsspec URL.
            split: which of its splits.
            identity: what opens a sealed delivery: see `Delivery.open`.
            cache_bytes: how much stored data to keep in memory, in each process; at least one shard.
            as_dict: whether items are dictionaries, by the names that models of Hugging Face expect.

        Raises:
            DeliveryError: if there is no delivery, no such split, or a shard that cannot be read.
        """
        self.split, self.as_dict = split, as_dict
        opened = Delivery.open(delivery, identity=identity)
        facts = opened.split(split)
        self._encoding = opened.encoding
        self._shards = ShardCache(opened, split, cache_bytes=cache_bytes)
        self._rows = self._shards.row_counts
        if sum(self._rows) != facts.rows:
            raise DeliveryError(
                f"{opened.label} has {sum(self._rows)} rows in split '{split}' and its manifest says "
                f"{facts.rows}: get the delivery again"
            )
        self._ends = np.cumsum(self._rows)

    def __len__(self) -> int:
        return sum(self._rows)

    def __repr__(self) -> str:
        form = f"{len(self):,} rows of {shape_text(self.input_shape)}, key {shown(self.key_fingerprint)}"
        return f"MorphedDataset({self.delivery.label!r}, {self.split!r}, {form})"

    def __getitem__(self, index: int) -> Item:
        """One row; `__getitems__` is faster for many."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Several rows at once: what a `DataLoader` calls for a batch."""
        wanted = self._checked(indices)
        samples = np.empty((len(wanted), element_count(self.input_shape)), np.float32)
        labels: npt.NDArray[np.int64] | None = np.empty(len(wanted), np.int64)
        shards = np.searchsorted(self._ends, wanted, side="right")
        for shard in np.unique(shards).tolist():
            places = np.flatnonzero(shards == shard)
            offsets = wanted[places] - (self._ends[shard] - self._rows[shard])
            rows = self._shards[shard]
            samples[places] = self._encoding.decode(rows.values[offsets])
            if rows.labels is None or labels is None:
                labels = None
            else:
                labels[places] = rows.labels[offsets]
        tensors = torch.from_numpy(samples).reshape(-1, *self.input_shape).unbind()
        if not self.as_dict:
            return list(tensors) if labels is None else list(zip(tensors, labels.tolist(), strict=True))
        if labels is None:
            return [{SAMPLES: sample} for sample in tensors]
        return [{SAMPLES: one, LABELS: label} for one, label in zip(tensors, labels.tolist(), strict=True)]

    @property
    def delivery(self) -> Delivery:
        """The delivery that it reads."""
        return self._shards.delivery

    @property
    def input_shape(self) -> Shape:
        """Shape of a sample."""
        return self.delivery.manifest.input_shape

    @property
    def key_fingerprint(self) -> str:
        """Which key the data was morphed with."""
        return self.delivery.manifest.key_fingerprint

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes, if the provider gave any."""
        return self.delivery.manifest.classes

    @cached_property
    def labels(self) -> npt.NDArray[np.int64] | None:
        """The label of every row, in order; None if the delivery has none."""
        return self.delivery.labels(self.split)

    @cached_property
    def row_ids(self) -> list[str]:
        """The random id of every row, in order."""
        return self.delivery.row_ids(self.split)

    @property
    def class_count(self) -> int:
        """Number of classes: as many as have names, or else one more than the largest label."""
        if self.classes is not None:
            return len(self.classes)
        return 0 if self.labels is None else int(self.labels.max(initial=-1)) + 1

    def sampler(self, *, seed: int) -> ShardSampler:
        """A shuffle for a `DataLoader`, across as many shards at a time as stay in memory."""
        return ShardSampler(self._rows, seed=seed, shards_at_once=self._shards.capacity)

    def _checked(self, indices: Sequence[int]) -> npt.NDArray[np.int64]:
        wanted: npt.NDArray[Any] = np.asarray(indices, dtype=np.int64)
        outside = (wanted < -len(self)) | (wanted >= len(self))
        if outside.any():
            raise IndexError(
                f"row {wanted[outside][0]} is not one of the {len(self)} of split '{self.split}'"
            )
        return np.where(wanted < 0, wanted + len(self), wanted)
