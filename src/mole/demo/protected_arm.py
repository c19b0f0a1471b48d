"""The fourth arm: noisy features in the place of images, sealed and morphed besides.

The developer makes a front from the network that it trained on public images. The provider hands over what
the front makes of its own ones, of a limited length, with noise. The developer fits a head to that and
returns it, and the provider uses it at home: on clean features of new images, which nobody else sees.
"""

import time
from pathlib import Path

import numpy as np
import pyrage
from torch import nn

import mole
from mole.demo.arms import CLASSES, MEAN, STD, Arm, plain_data
from mole.protection.head_file import write_head
from mole.provider.at_home import AtHome
from mole.provider.deliver import deliver
from mole.provider.heads import home_head
from mole.provider.protect import Protect
from mole.sources.bundled import Arrays
from mole.sources.opening import open_source
from mole.torch import export_first_layer, fit_head_on, make_front
from mole.torch.networks import linear_head

FEATURES = 32
BITS = 1.0
NAME = f"protected: {BITS:g} bit an image"


def protected_arm(images: Arrays, public_network: nn.Sequential, folder: Path, seeds: int) -> Arm:
    """Go the whole way as often as there are seeds, with a new key and new noise each time."""
    start = time.perf_counter()
    np.savez(folder / "learn.npz", x_train=images["x_private"], y_train=images["y_private"])
    np.savez(folder / "new.npz", x_test=images["x_test"], y_test=images["y_test"])
    public = plain_data(images, "public").tensors[0].numpy()
    front, backbone = folder / "front.onnx", public_network[:-1]  # features, not classes
    make_front(backbone, public, front, dimensions=FEATURES, normalisation=mole.Normalisation(MEAN, STD))
    accuracies = tuple(_accuracy(folder, front, seed) for seed in range(seeds))
    return Arm(NAME, accuracies, time.perf_counter() - start)


def _accuracy(folder: Path, front: Path, seed: int) -> float:
    out = folder / f"protected-{seed}"
    layer = export_first_layer(linear_head((FEATURES,), CLASSES), (FEATURES,))
    key = mole.MorphKey.generate((FEATURES,))
    developer = pyrage.x25519.Identity.generate()
    deliver(
        folder / "learn.npz", layer, key, out,
        protect=Protect(front, bits=BITS), recipients=[str(developer.to_public())],
    )  # fmt: skip
    checkpoint, head = out.with_suffix(".safetensors"), out.with_suffix(".onnx")
    fit_head_on(out, out=checkpoint, identity=str(developer))
    write_head(head, home_head(checkpoint, layer, key))
    seen = AtHome.open(front, head).look(open_source(folder / "new.npz"))
    return float((seen.scores.argmax(axis=1) == seen.labels).mean())
