"""What augmentation is worth on morphed data: a small network on few images, in six ways.

300 images of the Fashion-MNIST that ships with the package, tested on 1,000 others; `small_vgg`, three
seeds, the same number of steps in every arm. The first layer keeps its first weights in all of them, on
plain data too, so that nothing but the augmentation differs. Crops are cut from images with a border of
four pixels.
"""

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

import mole
from common import RESULTS, write_result
from mole.limits import MAX_VIEWS
from mole.provider.image_views import ITSELF, view_of
from mole.sources.bundled import fashion_mnist
from mole.torch import (
    MorphedDataset,
    attach,
    augment_features,
    build_model,
    evaluate,
    export_first_layer,
    train,
)

SHAPE, CLASSES, MEAN, STD = (1, 28, 28), 10, 0.286, 0.353
IMAGES, TESTED, EPOCHS, SEEDS, VIEWS, ALPHA = 300, 1000, 8, 3, 4, 0.2
OPTIONS: dict[str, Any] = {"batch_size": 25, "learning_rate": 2e-3}


class Plain(Dataset[tuple[torch.Tensor, int]]):
    """Plain images, each time cropped and flipped anew or not at all."""

    def __init__(self, images: Any, labels: Any, *, augmented: bool = False) -> None:
        self._images, self._labels, self._augmented = images[:, np.newaxis], labels.tolist(), augmented

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        kind = int(torch.randint(MAX_VIEWS, ())) if self._augmented else ITSELF
        image = view_of(self._images[index], kind).astype(np.float32)
        return torch.from_numpy((image / 255 - MEAN) / STD), self._labels[index]


def network(seed: int) -> nn.Module:
    """The same network for every arm, whose first layer does not learn."""
    torch.manual_seed(seed)
    model = build_model("small_vgg", SHAPE, CLASSES)
    model[0].requires_grad_(False)  # type: ignore[index]
    return model


def plain_arm(arrays: dict[str, Any], *, augmented: bool) -> Callable[[int], float]:
    """Train on plain images."""

    def accuracy(seed: int) -> float:
        model = network(seed)
        data = Plain(arrays["x_private"][:IMAGES], arrays["y_private"][:IMAGES], augmented=augmented)
        train(model, data, epochs=EPOCHS, seed=seed, **OPTIONS)
        return evaluate(model, Plain(arrays["x_test"], arrays["y_test"])).accuracy

    return accuracy


def morphed_arm(
    folder: Path, *, views: int = 1, mixup: float = 0.0, features: bool = False
) -> Callable[[int], float]:
    """Train on morphed images; the provider makes a key and a delivery for each seed."""

    def accuracy(seed: int) -> float:
        model, key = network(seed), mole.MorphKey.generate(SHAPE, insecure_seed=bytes([seed]) * 32)
        first = export_first_layer(model, SHAPE, mean=[MEAN], std=[STD])
        place = folder / f"{seed}-{views}"
        with warnings.catch_warnings(action="ignore"):
            mole.deliver(folder / "data.npz", first, key, place, views=views, allow_copying_layer=True)
        delivery = mole.Delivery.open(place)
        attach(model, mole.augment(first, key))
        if features:
            augment_features(model)
        data = MorphedDataset(delivery, "train")
        train(model, data, epochs=EPOCHS // views, mixup=mixup, seed=seed, **OPTIONS)
        return evaluate(model, MorphedDataset(delivery, "test")).accuracy

    return accuracy


def measured(name: str, accuracy: Callable[[int], float]) -> dict[str, Any]:
    """One arm: its accuracies, one per seed, in per cent."""
    start = time.perf_counter()
    found = [accuracy(seed) for seed in range(SEEDS)]
    return {
        "arm": name,
        "accuracy": round(100 * statistics.mean(found), 1),
        "spread": round(100 * statistics.stdev(found), 1),
        "accuracies": [round(one, 4) for one in found],
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    """Run the benchmark, or some of its arms, and put them beside those that were run before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", action="append", help="run the arms with this in their name; repeatable")
    wanted = parser.parse_args().arm or [""]
    arrays = fashion_mnist()
    arrays |= {name: arrays[name][:TESTED] for name in ("x_test", "y_test")}
    settings: dict[str, Any] = {
        "data": f"Fashion-MNIST, {IMAGES} images to learn from, {len(arrays['y_test'])} for tests",
        "network": "small_vgg, its first layer as it began",
        "epochs": EPOCHS,
        "seeds": SEEDS,
        "mixup": ALPHA,
        "views": VIEWS,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(
            folder / "data.npz",
            x_train=arrays["x_private"][:IMAGES], y_train=arrays["y_private"][:IMAGES],
            x_test=arrays["x_test"], y_test=arrays["y_test"],
        )  # fmt: skip
        arms = {
            "plain data, no augmentation": plain_arm(arrays, augmented=False),
            "plain data, crops and flips": plain_arm(arrays, augmented=True),
            "morphed data, no augmentation": morphed_arm(folder),
            "morphed data, mixup": morphed_arm(folder, mixup=ALPHA),
            f"morphed data, {VIEWS} views": morphed_arm(folder, views=VIEWS),
            "morphed data, feature maps cropped and flipped": morphed_arm(folder, features=True),
        }
        for arm, accuracy in arms.items():
            if any(part in arm for part in wanted):
                result = measured(arm, accuracy)
                known = {**earlier(settings), arm: result}
                every = [known[one] for one in arms if one in known]
                write_result("augmentations", {**settings, "arms": every})


def earlier(settings: dict[str, Any]) -> dict[str, Any]:
    """Arms that were run before with the same settings, by name."""
    file = RESULTS / "augmentations.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    if any(found.get(name) != value for name, value in settings.items()):
        return {}
    return {arm["arm"]: arm for arm in found["arms"]}


if __name__ == "__main__":
    main()
