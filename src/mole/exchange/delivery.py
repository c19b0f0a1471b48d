"""An opened delivery: what every reader of one asks, with or without the key.

    delivery = Delivery.open("delivery")
    delivery.manifest.rows, delivery.has_layer
    for shard in delivery.shards("train"): ...

The manifest is read once, when the delivery is opened; everything else when it is asked for.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mole.errors import DeliveryError
from mole.exchange.facts import SplitFacts
from mole.exchange.layer_files import load_augmented_layer
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.manifest import Manifest
from mole.exchange.probes import Probes, Witnesses, load_probes
from mole.exchange.shard_files import ShardFile
from mole.exchange.shards import Encoding, Shard, load_encoding, shard_name
from mole.foreign_text import listed, shown
from mole.scheme.augmented import AugmentedLayer
from mole.scheme.shapes import Array, roll, shape_text
from mole.storage.identities import Identity, identity_texts
from mole.storage.sealed import SUFFIX, SealedStore, is_sealed
from mole.storage.stores import LocalStore, Store, digest_of, open_store, stored_file

AUGMENTED = "augmented-layer.safetensors"
UNFINISHED = "unfinished.json"


@dataclass(frozen=True)
class Delivery:
    """A delivery in its place, and what its manifest says of it.

    Attributes:
        store: where it lies.
        manifest: what it holds.
        opened_as: the bytes that the manifest was read from; None for a delivery that was made here.
    """

    store: Store
    manifest: Manifest
    opened_as: bytes | None = field(default=None, repr=False, compare=False)

    @classmethod
    def open(
        cls, place: "str | os.PathLike[str] | Store | Delivery", *, identity: Identity | None = None
    ) -> "Delivery":
        """Open a finished delivery by its folder, URL or store; one that is open already stays as it is.

        Args:
            place: where it lies.
            identity: what opens a sealed delivery: an age identity file or an SSH private key, by its path
                or as text, or several of them.

        Raises:
            DeliveryError: if nothing is there, it is not a delivery or not finished, its manifest is
                damaged, or it is sealed and the identity is not one of those that open it.
        """
        if isinstance(place, Delivery):
            return place
        store = open_store(os.fspath(place)) if isinstance(place, str | os.PathLike) else place
        if isinstance(store, LocalStore) and not store.folder.exists():
            raise DeliveryError(f"{store.label} does not exist: give the folder of a delivery")
        _check_finished(store)
        store = _unsealed(store, identity)
        content = Manifest.stored(store)
        return cls(store, Manifest.parse(content, f"{store.label}/{MANIFEST}"), content)

    def __repr__(self) -> str:
        rows = " + ".join(f"{facts.rows:,} {shown(name)}" for name, facts in self.manifest.splits.items())
        form = f"{shape_text(self.manifest.input_shape)} as {self.manifest.dtype}"
        return (
            f"Delivery({self.label!r}, {rows} rows of {form}, key {shown(self.manifest.key_fingerprint)})"
        )

    @property
    def manifest_bytes(self) -> bytes:
        """The bytes that `manifest` stands for: what a signature has to sign, whatever lies there now."""
        if self.opened_as is not None:
            return self.opened_as
        content, name = Manifest.stored(self.store), f"{self.label}/{MANIFEST}"
        if Manifest.parse(content, name) != self.manifest:
            raise DeliveryError(
                f"{name} has changed since the delivery was opened: open the delivery again"
            )
        return content

    @property
    def is_sealed(self) -> bool:
        """Whether its files lie encrypted."""
        return isinstance(self.store, SealedStore)

    @property
    def label(self) -> str:
        """Its path or URL, which also opens it again."""
        return self.store.label

    @cached_property
    def encoding(self) -> Encoding:
        """How its rows are stored."""
        return load_encoding(self.store, self.manifest.dtype, self.manifest.input_shape)

    @property
    def has_layer(self) -> bool:
        """Whether an augmented layer came with it; requests come without."""
        return AUGMENTED in self.manifest.files

    def layer(self) -> AugmentedLayer | None:
        """The augmented layer, read anew each time because it is large; None where none came."""
        if not self.has_layer:
            return None
        return load_augmented_layer(stored_file(self.store, AUGMENTED))

    def probes(self) -> tuple[Probes, Witnesses]:
        """What shows that layer and data fit together; an error where no layer came."""
        return load_probes(self.store, self.manifest)

    def split(self, name: str) -> SplitFacts:
        """Rows and shards of a split; an error that lists the splits if there is none of that name."""
        facts = self.manifest.splits.get(name)
        if facts is None:
            known = listed(self.manifest.splits) or "none"
            raise DeliveryError(f"{self.label} has no split '{shown(name)}': it has {known}")
        return facts

    @property
    def main_split(self) -> str:
        """The split that stands for the whole: 'train', or else the first."""
        names = list(self.manifest.splits)
        return "train" if "train" in names else names[0]

    def shard_names(self, split: str | None = None) -> list[str]:
        """The names of a split's shards, or of all shards in the order of the manifest."""
        wanted = self.manifest.splits if split is None else {split: self.split(split)}
        return [
            shard_name(name, index, facts.shards)
            for name, facts in wanted.items()
            for index in range(facts.shards)
        ]

    def shard_files(self, split: str) -> list[ShardFile]:
        """A split's shards as files, none of which is read yet."""
        return [ShardFile(self.store, name) for name in self.shard_names(split)]

    def shards(self, split: str) -> Iterator[Shard]:
        """A split's shards, one by one."""
        for file in self.shard_files(split):
            yield file.read(self.manifest.input_shape, self.manifest.dtype, self.manifest.column)

    def first_rows(
        self, split: str, at_most: int, keep: Callable[[Array], Array] | None = None
    ) -> tuple[Array, list[str]]:
        """The first rows of a split: morphed samples as float32, (n, *input_shape), and their ids.

        Args:
            split: which one.
            at_most: how many rows.
            keep: what to keep of the samples of a shard, (n, *input_shape), where whole ones take too much
                memory.

        Raises:
            DeliveryError: if there are none.
        """
        rows: list[Array] = []
        ids: list[str] = []
        for shard in self.shards(split):
            wanted = at_most - len(ids)
            morphed = roll(self.encoding.decode(shard.values[:wanted]), self.manifest.input_shape)
            rows.append(morphed if keep is None else keep(morphed))
            ids += shard.row_ids[:wanted]
            if len(ids) >= at_most:
                break
        if not ids:
            raise DeliveryError(
                f"{self.label} has no rows in split '{shown(split)}': ask its sender for another"
            )
        return np.concatenate(rows), ids

    def row_ids(self, split: str) -> list[str]:
        """The id of every row of a split."""
        return [row_id for file in self.shard_files(split) for row_id in file.row_ids()]

    def labels(self, split: str) -> npt.NDArray[np.int64] | None:
        """The label of every row of a split; None where it has none."""
        columns = [file.labels() for file in self.shard_files(split)]
        found = [labels for labels in columns if labels is not None]
        if found and len(found) < len(columns):
            raise DeliveryError(
                f"{self.label}: some shards of '{shown(split)}' have no labels: get it again"
            )
        return np.concatenate(found) if found else None

    def damaged(self, names: Sequence[str] | None = None) -> list[str]:
        """Which of its files, or of those named, are not as they were made."""
        files = self.manifest.files
        looked_at = files if names is None else [name for name in names if name in files]
        return [
            name
            for name in looked_at
            if digest_of(self.store, name) != (files[name].sha256, files[name].bytes)
        ]


def _check_finished(store: Store) -> None:
    """Refuse what is not a delivery, or is not finished yet, each in its own words."""
    names = store.names()
    if names & {MANIFEST, MANIFEST + SUFFIX}:
        return
    if names & {UNFINISHED, UNFINISHED + SUFFIX}:
        raise DeliveryError(
            f"{store.label} holds a delivery that is not finished: its provider finishes it by repeating "
            "the call that began it"
        )
    raise DeliveryError(
        f"{store.label} has no {MANIFEST}, so it is not a delivery: give the folder or URL of one, or "
        "make one of your images with mole deliver or mole morph"
    )


def _unsealed(store: Store, identity: Identity | None) -> Store:
    """A store whose files can be read: the same one, unless they are sealed."""
    names = set() if isinstance(store, SealedStore) else store.names()
    if MANIFEST in names and MANIFEST + SUFFIX in names:
        raise DeliveryError(f"{store.label} holds both {MANIFEST} and {MANIFEST}{SUFFIX}: get it again")
    if MANIFEST in names or not is_sealed(names):
        return store
    if identity is None:
        raise DeliveryError(f"{store.label} is sealed", advice={"identity": None})
    return SealedStore(store, identities=identity_texts(identity))
