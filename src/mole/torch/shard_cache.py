"""The shards of one split, read when they are needed; those used most recently stay in memory."""

import os
from collections import OrderedDict
from multiprocessing.context import get_spawning_popen
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import Manifest
from mole.scheme.shapes import element_count
from mole.storage.sealed import SealedStore
from mole.storage.stores import open_store


class Rows(NamedTuple):
    """What is kept of a shard: stored values (rows, elements), and labels if it has any."""

    values: npt.NDArray[Any]
    labels: npt.NDArray[np.int64] | None


class ShardCache:
    """Shards by number, as many of them in memory as fit; shards are alike in size.

    It can be sent to other processes: each opens the files itself and keeps its own shards in memory. That
    of a sealed delivery goes to processes that are being started, and into no other pickle: it would hold
    the identity, wherever that was read from.

    Attributes:
        row_counts: rows of each shard, from the ends of the files.
        capacity: how many shards stay in memory, one at least.
    """

    def __init__(self, delivery: Delivery, split: str, *, cache_bytes: int) -> None:
        self._delivery, self._split, self._process = delivery, split, os.getpid()
        self.row_counts = [file.row_count() for file in delivery.shard_files(split)]
        self.capacity = max(1, cache_bytes // max(1, self._bytes_of_a_shard()))
        self._kept: OrderedDict[int, Rows] = OrderedDict()

    @property
    def delivery(self) -> Delivery:
        """The delivery, opened in this process: a connection does not survive a fork."""
        if self._process != os.getpid():
            self._process, self._delivery = os.getpid(), _open_again(*_address(self._delivery))
        return self._delivery

    def __getitem__(self, index: int) -> Rows:
        """A shard, from memory or from its file."""
        if index not in self._kept:
            while len(self._kept) >= self.capacity:
                self._kept.popitem(last=False)  # what was not used for longest, before the next is read
            self._kept[index] = self._read(index)
        self._kept.move_to_end(index)
        return self._kept[index]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but open connections and the shards in memory.

        Raises:
            DeliveryError: if the delivery is sealed, and this is not for a process that is being started.
        """
        if self._delivery.is_sealed and get_spawning_popen() is None:
            raise DeliveryError(
                f"{self._delivery.label} is sealed, and a pickle or a copy of its data set would hold the "
                "identity: make the data set anew where it is needed"
            )
        state = {name: value for name, value in self.__dict__.items() if name != "_kept"}
        return {**state, "_delivery": _address(self._delivery)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._process, self._delivery = os.getpid(), _open_again(*state["_delivery"])
        self._kept = OrderedDict()

    def _read(self, index: int) -> Rows:
        manifest, file = self.delivery.manifest, self.delivery.shard_files(self._split)[index]
        shard = file.read(manifest.input_shape, manifest.dtype, manifest.column)
        return Rows(shard.values, shard.labels)

    def _bytes_of_a_shard(self) -> int:
        manifest = self._delivery.manifest
        row = element_count(manifest.input_shape) * np.dtype(manifest.dtype).itemsize
        return max(self.row_counts, default=0) * row


def _address(delivery: Delivery) -> tuple[str, Manifest, tuple[str, ...] | None]:
    store = delivery.store
    return delivery.label, delivery.manifest, store.identities if isinstance(store, SealedStore) else None


def _open_again(label: str, manifest: Manifest, identities: tuple[str, ...] | None) -> Delivery:
    """A delivery whose manifest is known, and need not be read a second time."""
    store = open_store(label)
    return Delivery(store if identities is None else SealedStore(store, identities=identities), manifest)
