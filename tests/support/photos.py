"""Photos in class folders: cut-outs of those inside scikit-image, and others where there are some."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import mole
from mole.sources.bundled import PRIVATE_PHOTOS, bundled_images

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SPLITS = ("train", "val")
FURTHER = os.environ.get("MOLE_PHOTOS")
needs_photos = pytest.mark.skipif(
    FURTHER is None,
    reason="MOLE_PHOTOS does not name a folder of photos (train and val, class folders, all of one size)",
)


def write_photos(folder: Path, *, side: int, train: int, val: int) -> Path:
    """Square cut-outs of a cat, of coffee and of a rocket, in turn: each photograph is a class."""
    images = bundled_images((3, side, side), private=train + val, public=0).private
    for index, image in enumerate(images):
        name = PRIVATE_PHOTOS[index % len(PRIVATE_PHOTOS)]
        place = folder / SPLITS[index >= train] / name
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.transpose(1, 2, 0)).save(place / f"{index:03}.png")
    return folder


def some_further_photos(folder: Path, *, train: int, val: int) -> Path:
    """The first few of each class in the folder that MOLE_PHOTOS names."""
    for split, count in zip(SPLITS, (train, val), strict=True):
        for place in sorted((Path(str(FURTHER)) / split).iterdir()):
            (folder / split / place.name).mkdir(parents=True)
            for file in sorted(place.iterdir())[:count]:
                shutil.copy(file, folder / split / place.name)
    return folder


def read_plain(folder: Path, split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A split as a network expects it, with labels: by Pillow alone, in the order of names."""
    classes = sorted((folder / split).iterdir())
    files = [(file, label) for label, place in enumerate(classes) for file in sorted(place.iterdir())]
    pixels = np.stack([np.asarray(Image.open(file).convert("RGB")).transpose(2, 0, 1) for file, _ in files])
    plain = mole.Normalisation(MEAN, STD).apply(pixels)
    return torch.from_numpy(plain), torch.tensor([label for _, label in files])
