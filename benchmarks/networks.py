"""What the augmented layer costs a whole network: forward and training step, against the plain network.

Random weights, nothing is downloaded. Each setting runs in turn with the plain network, round by round, on
one thread, and processor time is counted: a machine that others use as well changes both alike. The median
of the ratios is told, and the lowest and the highest. A training step is forward, backward and SGD: the
augmented layer is frozen, so it takes no gradient.

Each result is written when it is there. `--only "vgg-16, training"` measures some again and keeps the rest.
"""

import argparse
import copy
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

import mole
from common import RESULTS, write_result
from mole.scheme.shapes import Shape
from mole.torch import attach, export_first_layer
from mole.torch.networks import vgg16

IMAGENET, CIFAR = (3, 224, 224), (3, 32, 32)
CLASSES = 10
ROUNDS = 7
FACTORED = "rows, factored"
TWO_FORMS = find_spec("mole.scheme.factored") is not None


@dataclass(frozen=True)
class Setting:
    """A network, how its images are cut, and how many go through it at once."""

    network: str
    build: Callable[[], nn.Module]
    shape: Shape
    cut: str | int  # "rows", "rows, factored", or the side of a tile
    batch: int
    train: bool = False

    @property
    def blocks(self) -> str:
        """How images are cut, in words."""
        return f"tiles of {self.cut}" if isinstance(self.cut, int) else self.cut

    @property
    def what(self) -> str:
        """What is measured, in words."""
        return "training step" if self.train else "forward"

    @property
    def name(self) -> str:
        """All of it in words."""
        return f"{self.network}, {self.what}, {self.blocks}"


def resnet50() -> nn.Module:
    """ResNet-50 as Hugging Face has it."""
    config: Any = ResNetConfig
    build: Any = ResNetForImageClassification
    model: nn.Module = build(config(num_labels=CLASSES))
    return model


def vit_b_16() -> nn.Module:
    """ViT-B/16 as Hugging Face has it."""
    config: Any = ViTConfig
    return ViTForImageClassification(config(num_labels=CLASSES))


def small_vgg16() -> nn.Module:
    """The paper's network for images of 32x32."""
    return vgg16(CIFAR, CLASSES)


SETTINGS = [
    *(Setting("ResNet-50", resnet50, IMAGENET, tile, batch=4) for tile in (4, 8, 16)),
    Setting("ViT-B/16", vit_b_16, IMAGENET, 16, batch=2),
    *(
        Setting("VGG-16", small_vgg16, CIFAR, cut, batch=64, train=train)
        for train in (False, True)
        for cut in ("rows", FACTORED, 4, 8)
    ),
]


def augmented(model: nn.Module, first: mole.FirstLayer, setting: Setting) -> tuple[nn.Module, int]:
    """A copy of a model with an augmented layer, and the bytes of that layer."""
    tile = setting.cut if isinstance(setting.cut, int) else None
    key = mole.MorphKey.generate(setting.shape, tile=tile)
    forms = {"rows": "dense", FACTORED: "factored"} if TWO_FORMS else {}
    options: dict[str, Any] = {"form": forms[setting.cut]} if setting.cut in forms else {}
    layer = mole.augment(first, key, **options)
    model = copy.deepcopy(model)
    attach(model, layer)
    return model, layer.nbytes


def step(model: nn.Module, batch: Tensor, *, train: bool) -> Callable[[], None]:
    """One forward pass, or one step of training."""
    model.train(train)
    if not train:

        def infer() -> None:
            with torch.inference_mode():
                model(batch)

        return infer
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    targets = torch.arange(len(batch)) % CLASSES

    def learn() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), targets).backward()
        optimizer.step()

    return learn


def processor_seconds(work: Callable[[], None]) -> float:
    """What one call takes of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(setting: Setting, rounds: int) -> dict[str, Any]:
    """Plain and augmented in turn; the first round does not count."""
    torch.manual_seed(0)
    plain = setting.build()
    first = export_first_layer(plain, setting.shape)
    ours, size = augmented(plain, first, setting)
    batch = torch.randn(setting.batch, *setting.shape)
    steps = [step(model, batch, train=setting.train) for model in (plain, ours)]
    times = [[processor_seconds(one) for one in steps] for _ in range(rounds + 1)][1:]
    ratios = [own / bare for bare, own in times]
    bare, own = (statistics.median(column) / setting.batch for column in zip(*times, strict=True))
    return {
        "network": setting.network,
        "blocks": setting.blocks,
        "what": setting.what,
        "batch": setting.batch,
        "rounds": rounds,
        "plain_ms_a_sample": round(1000 * bare, 2),
        "augmented_ms_a_sample": round(1000 * own, 2),
        "times_plain": round(statistics.median(ratios), 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
        "layer_bytes": size,
        "plain_layer_bytes": first.weight.nbytes,
    }


def save(result: dict[str, Any]) -> None:
    """Put one result in the place of the one that was there, in the order of the settings."""
    file = RESULTS / "networks.json"
    kept = json.loads(file.read_text())["results"] if file.exists() else []
    found = {_name(row): row for row in [*kept, result]}
    names = [setting.name for setting in SETTINGS]
    ordered = [found[name] for name in names if name in found]
    write_result("networks", {"torch": torch.__version__, "threads": 1, "results": ordered})


def _name(row: dict[str, Any]) -> str:
    return f"{row['network']}, {row['what']}, {row['blocks']}"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="only settings with this in their name")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for setting in SETTINGS:
        if arguments.only.lower() not in setting.name.lower():
            continue
        if setting.cut == FACTORED and not TWO_FORMS:
            print(f"{setting.name}: left out, this version has none")
            continue
        save(measure(setting, arguments.rounds))


if __name__ == "__main__":
    main()
