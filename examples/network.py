"""The developer's network, and how it gets its first weights: `python network.py`.

`mole` takes it as `network:small`: the function `small` of this file.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

import mole

CLASSES, MEAN, STD = 10, 0.286, 0.353  # of Fashion-MNIST


def small() -> nn.Module:
    """Two convolutions, for grey images of 20x20. Any network will do that begins with a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 5 * 5, CLASSES),
    )  # fmt: skip


def main() -> None:
    """Train on public images, and save the weights: the provider will need those of the first layer."""
    files = sorted(Path("public-photos").glob("*/*.png"))
    classes = sorted({file.parent.name for file in files})
    pixels = np.stack([np.asarray(Image.open(file), np.float32) for file in files])[:, np.newaxis]
    images = torch.from_numpy((pixels / 255 - MEAN) / STD)
    labels = torch.tensor([classes.index(file.parent.name) for file in files])
    torch.manual_seed(0)
    model = small()
    *_, last = mole.torch.train(model, torch.utils.data.TensorDataset(images, labels), epochs=8)
    torch.save(model.state_dict(), "public.pt")
    print(f"public.pt: weights that know {100 * last.accuracy:.0f} % of the public images")


if __name__ == "__main__":
    main()
