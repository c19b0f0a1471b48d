"""Small data sets, layers and keys for tests of deliveries."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

import mole
from chosen_layout import cut
from mole.exchange.delivery import Delivery

SHAPE = (3, 8, 8)
SMALL = {"rows_per_shard": 16}


def write_npz(path: Path, *, train: int = 100, test: int = 30, seed: int = 0) -> Path:
    """8-bit colour images of 8x8 with labels, as x_train, y_train, x_test, y_test."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for split, count in (("train", train), ("test", test)):
        if count:
            arrays[f"x_{split}"] = rng.integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
            arrays[f"y_{split}"] = rng.integers(0, 10, count)
    np.savez(path, **arrays)
    return path


def make_layer(seed: int = 0) -> mole.FirstLayer:
    rng = np.random.default_rng(seed)
    return mole.FirstLayer.conv(
        rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        rng.normal(size=4).astype(np.float32),
        input_shape=SHAPE,
        padding=1,
        normalisation=mole.Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)),
    )


def make_key(seed: int = 0, **options) -> mole.MorphKey:
    return mole.MorphKey.generate(SHAPE, insecure_seed=bytes([seed] * 32), **cut(**options))


def tensors(table: pa.Table, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """The morphed values of a shard that was read with pyarrow, in the shape of the images."""
    column = "image_int8" if "image_int8" in table.column_names else "image"
    return table[column].combine_chunks().flatten().to_numpy().reshape(-1, *shape)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its name in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def unfinish(delivery: Delivery) -> None:
    """Take a delivery back to the moment before its manifest was written."""
    delivery.store.remove("manifest.json")
    pinned = json.dumps({"delivery_id": delivery.manifest.delivery_id})
    delivery.store.write("unfinished.json", pinned.encode())
