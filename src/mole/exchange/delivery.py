"""The files of a delivery besides its manifest: names, and how each is written and read."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mole.exchange.encoding import Encoding
from mole.exchange.layer_files import load_augmented_layer
from mole.exchange.manifest import Manifest, SplitFacts
from mole.exchange.shards import Shard, read_shard, shard_name
from mole.scheme.augmented import AugmentedLayer
from mole.storage.checked import load_checked, save_checked
from mole.storage.stores import LocalStore, Store

AUGMENTED = "augmented-layer.safetensors"
SCALES = "scales.safetensors"
UNFINISHED = "unfinished.json"


@contextmanager
def local_copy(store: Store, name: str) -> Iterator[Path]:
    """A path under which a file of the store can be read."""
    if isinstance(store, LocalStore):
        yield store.folder / name
        return
    with tempfile.TemporaryDirectory(prefix="mole-") as scratch:
        path = Path(scratch) / name
        path.write_bytes(store.read(name))
        yield path


def load_delivered_layer(store: Store) -> AugmentedLayer:
    """The augmented layer of a delivery."""
    with local_copy(store, AUGMENTED) as path:
        return load_augmented_layer(path)


def save_encoding(store: Store, encoding: Encoding) -> None:
    """Write the scales of 8-bit data; other data has none."""
    if encoding.scales is not None:
        scales, metadata = encoding.scales, {"format": "mole-scales", "version": "1"}
        store.make(SCALES, lambda path: save_checked(path, {"scales": scales}, metadata))


def load_encoding(store: Store, dtype: str) -> Encoding:
    """The encoding of a delivery's data."""
    if dtype != "int8":
        return Encoding(dtype)
    with local_copy(store, SCALES) as path:
        tensors, _ = load_checked(path)
    return Encoding(dtype, tensors["scales"])


def shard_names(splits: Mapping[str, SplitFacts]) -> list[str]:
    """The names of all shards, split by split."""
    return [
        shard_name(split, index, facts.shards)
        for split, facts in splits.items()
        for index in range(facts.shards)
    ]


def read_shards(store: Store, manifest: Manifest, split: str) -> Iterator[Shard]:
    """The shards of a split, one by one."""
    count = manifest.splits[split].shards
    for index in range(count):
        name = shard_name(split, index, count)
        with store.open(name) as file:
            yield read_shard(file, f"{store.label}/{name}", manifest.input_shape, manifest.dtype)
