"""Images in class folders, read with nothing but Pillow: what a network sees without morphing."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch.utils.data import TensorDataset

import mole

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, as everybody has them
LEARNING = "train"


def splits_of(data: Path) -> tuple[str, str]:
    """The split to learn from, and the one to be tested on."""
    found = [folder.name for folder in data.iterdir() if folder.is_dir()]
    others = [name for name in ("test", "val", "validation") if name in found]
    if LEARNING not in found or not others:
        raise SystemExit(f"{data} needs a folder {LEARNING}, and test or val, with a folder for each class")
    return LEARNING, others[0]


def files_of(data: Path, split: str) -> Iterator[tuple[Path, int]]:
    """Each image with the number of its class: classes by name, and images by name in each."""
    classes = sorted(folder for folder in (data / split).iterdir() if folder.is_dir())
    for label, folder in enumerate(classes):
        for file in sorted(folder.iterdir()):
            yield file, label


def pixels_of(file: Path, side: int) -> npt.NDArray[np.uint8]:
    """An image of that side, (3, side, side): nothing is resized here."""
    with Image.open(file) as image:
        pixels = np.asarray(image.convert("RGB"), np.uint8).transpose(2, 0, 1)
    if pixels.shape != (3, side, side):
        raise SystemExit(f"{file} is not {side}x{side}")
    return pixels


def plain_data(data: Path, split: str, side: int) -> TensorDataset:
    """A split as a network expects it: normalised, with labels."""
    files = list(files_of(data, split))
    pixels = np.stack([pixels_of(file, side) for file, _ in files])
    plain = mole.Normalisation(MEAN, STD).apply(pixels)
    return TensorDataset(torch.from_numpy(plain), torch.tensor([label for _, label in files]))
