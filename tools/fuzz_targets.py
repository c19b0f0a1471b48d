"""What is fuzzed: good files of every kind, how each is damaged, and who reads it."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz_damage import any_file, checked_bytes, checked_header, packed, plain_json, sealed_json
from fuzz_files import TABLES
from fuzz_mutations import damaged
from fuzz_readers import (
    audit_delivery,
    read_delivery,
    read_key,
    read_labelled,
    read_layer,
    read_manifest,
    read_network,
    read_pinned,
    read_source,
)

Damage = Callable[[bytes, random.Random], bytes]


class Target(NamedTuple):
    """A kind of file.

    Attributes:
        files: names in the folder of good files, one of which is damaged each time.
        damage: how.
        read: what is done with the folder; anything but a MoleError from it is a finding.
    """

    files: tuple[str, ...]
    damage: Damage
    read: Callable[[Path], object]


SHARDS = ("data/train-00000-of-00002.parquet", "data/test-00000-of-00001.parquet")

CHECKED_FILES = ("probes.safetensors", "augmented-layer.safetensors")


TARGETS = {
    "layer": Target(("layer.safetensors",), checked_bytes, read_layer),
    "layer-header": Target(("layer.safetensors",), checked_header, read_layer),
    "augmented": Target(("layer.safetensors",), checked_bytes, read_layer),
    "augmented-header": Target(("layer.safetensors",), checked_header, read_layer),
    "factored": Target(("layer.safetensors",), checked_bytes, read_layer),
    "factored-header": Target(("layer.safetensors",), checked_header, read_layer),
    "manifest": Target(("manifest.json",), sealed_json, read_manifest),
    "delivery": Target(SHARDS, damaged, read_delivery),
    "delivery-int8": Target((*SHARDS, "scales.safetensors"), damaged, read_delivery),
    "audit": Target((*SHARDS, *CHECKED_FILES), any_file, audit_delivery),
    "delivery-checked": Target(CHECKED_FILES, checked_bytes, read_delivery),
    "delivery-header": Target(CHECKED_FILES, checked_header, read_delivery),
    "unfinished": Target(("out/unfinished.json",), plain_json, read_pinned),
    "key": Target(("key.txt", "whitening"), damaged, read_key),
    "checkpoint": Target(("model.safetensors",), checked_bytes, read_network),
    "checkpoint-header": Target(("model.safetensors",), checked_header, read_network),
    "npz": Target(("data.npz",), damaged, read_source),
    "npz-packed": Target(("data.npz",), damaged, read_source),
    "npy": Target(("data.npy",), damaged, read_source),
    "parquet": Target(("train.parquet",), damaged, read_source),
    "parquet-lists": Target(("train.parquet",), damaged, read_source),
    "arrow": Target(("data.arrow",), damaged, read_source),
    "arrow-state": Target(("state.json",), plain_json, read_source),
    "cifar": Target(("test_batch", "batches.meta"), damaged, read_source),
    "idx": Target(("train-images-idx3-ubyte", "train-labels-idx1-ubyte"), damaged, read_source),
    "idx-gz": Target(("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"), packed, read_source),
    "images": Target(("0.png", "1.jpg", "2.tif", "3.bmp", "4.webp"), damaged, read_source),
    "labels": Target(tuple(f"tables/labels.{kind}" for kind in TABLES), damaged, read_labelled),
    "dicom": Target(("scan.dcm",), damaged, read_source),
    "dicom-deflated": Target(("scan.dcm",), damaged, read_source),
}


# Several kinds of damage share a folder of good files.
SAME_FILES = {
    "layer-header": "layer",
    "augmented-header": "augmented",
    "factored-header": "factored",
    "manifest": "delivery",
    "audit": "delivery",
    "delivery-checked": "delivery",
    "delivery-header": "delivery",
    "checkpoint-header": "checkpoint",
    "arrow-state": "arrow",
}

FOLDERS = tuple(kind for kind in TARGETS if kind not in SAME_FILES)
