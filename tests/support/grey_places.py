"""A provider of small grey images: its folder with a first layer and a key, and what opens the key."""

from pathlib import Path

import numpy as np
import pyrage
from PIL import Image

import mole

IDENTITY = pyrage.x25519.Identity.generate()
LAYER = ["--layer", "layer.safetensors"]
FOR_ME = ["--recipient", str(IDENTITY.to_public())]
KEY = ["--key", "my.key", "--identity", "identity.txt"]
GIVEN = [*LAYER, *KEY]


def make_grey_place(folder: Path) -> tuple[mole.FirstLayer, mole.MorphKey]:
    """Write what a provider has before it has images of 8x8; the layer and the key."""
    weight = np.random.default_rng(0).normal(size=(4, 1, 3, 3)).astype(np.float32)
    layer = mole.FirstLayer.conv(weight, None, input_shape=(1, 8, 8), padding=1)
    mole.save(layer, folder / "layer.safetensors")
    key = mole.MorphKey.generate((1, 8, 8), insecure_seed=bytes(32))
    key.save(folder / "my.key", recipients=[str(IDENTITY.to_public())])
    (folder / "identity.txt").write_text(str(IDENTITY))
    return layer, key


def make_labelled_photos(folder: Path, count: int) -> None:
    """Write photographs, and a table of their labels: odd or even, by their numbers."""
    (folder / "photos").mkdir()
    for number in range(count):
        Image.fromarray(pixels(number)).save(folder / "photos" / f"{number:02d}.png")
    rows = "".join(
        f"{number:02d}.png,{'odd' if number % 2 else 'even'},{number}\n" for number in range(count)
    )
    (folder / "labels.csv").write_text(f"file_name,label,age\n{rows}")


def pixels(number: int) -> np.ndarray:
    """The image of a number."""
    return np.random.default_rng(number).integers(0, 256, (8, 8), dtype=np.uint8)
