"""Photos of ImageNet's size, delivered in tiles to a ResNet-50: time, size, and whether features agree.

Give --data with photos of 224x224 in class folders: DATA/train/CLASS/*.jpg and DATA/val (or test). The
network has random weights. Features of delivered rows are compared with those that its own first layer
gives of the photos as Pillow reads them, and so are the answers of the whole network; the layer of another
key shows what a difference is. Times are told as ratios: of delivering to reading the photos, and of the
network with the augmented layer to the plain one, by turns.
"""

import argparse
import copy
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from transformers import ResNetConfig, ResNetForImageClassification

import mole
from class_folders import MEAN, STD, plain_data, splits_of
from common import write_result
from mole.exchange.delivery import Delivery
from mole.exchange.shards import Dtype
from mole.provider.deliver import deliver
from mole.provider.row_numbers import RowNumbers
from mole.scheme.layer_sizes import augmented_bytes
from mole.scheme.layouts import RowsLayout
from mole.scheme.shapes import element_count
from mole.torch import MorphedDataset, attach, export_first_layer
from mole.torch.batches import samples_of
from mole.torch.running import logits_of

SHAPE, TILE = (3, 224, 224), 8
COMPARED, BATCH, ROUNDS = 16, 4, 3
STEM = "resnet.embedder.embedder.convolution"
T = TypeVar("T")


class Setting(NamedTuple):
    """What every delivery has in common: the network, its first layer, the photos and the key."""

    model: nn.Module
    layer: mole.FirstLayer
    data: Path
    testing: str
    tested: Tensor
    key: mole.MorphKey
    other: mole.MorphKey


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="photos of 224x224 in class folders")
    data = parser.parse_args().data
    torch.manual_seed(0)
    model: nn.Module = ResNetForImageClassification(ResNetConfig()).eval()  # type: ignore[no-untyped-call]
    layer = export_first_layer(model, SHAPE, mean=MEAN, std=STD)
    (learned, tested), reading = timed(
        lambda: [plain_data(data, split, SHAPE[1]).tensors[0] for split in splits_of(data)]
    )
    key, making = timed(lambda: key_from(learned))
    setting = Setting(model, layer, data, splits_of(data)[1], tested, key, key_from(learned))
    rows = RowsLayout(SHAPE, 1)
    result: dict[str, Any] = {
        "images": data.name, "rows": len(learned) + len(tested), "network": "ResNet-50", "tile": TILE,
        "core": "whitened", "compared": COMPARED,
        "key_s_over_reading_s": round(making / reading, 2),
        "augmented layer": augmented_bytes(layer, key.morphing.layout),
        "augmented layer in blocks of rows": augmented_bytes(layer, rows),
        "forward": forward(setting),
    }  # fmt: skip
    dtypes: tuple[Dtype, ...] = ("float32", "int8")
    for dtype in dtypes:
        with tempfile.TemporaryDirectory() as folder:
            result[dtype] = measure(setting, dtype, Path(folder) / "delivery", reading)
    write_result("large_images", result)


def key_from(sample: Tensor) -> mole.MorphKey:
    """A key that learned from photos."""
    return mole.MorphKey.generate(SHAPE, tile=TILE, core="whitened", sample=sample.numpy())


def measure(setting: Setting, dtype: Dtype, out: Path, reading: float) -> dict[str, Any]:
    """One delivery: how long it takes, how large it is, and what a network makes of it."""
    made, delivering = timed(
        lambda: deliver(
            setting.data, setting.layer, setting.key, out, dtype=dtype, mode="RGB", class_names=True
        )
    )
    delivery = made.delivery
    checks, verifying = timed(lambda: list(mole.verify(delivery)))
    size = delivery.manifest.data_bytes / (delivery.manifest.rows * element_count(SHAPE))
    return {
        "deliver_s_over_reading_s": round(delivering / reading, 2),
        "verify_s_over_reading_s": round(verifying / reading, 2),
        "verified": all(check.holds for check in checks),
        "data_bytes_over_plain_8_bit_bytes": round(size, 3),
        **errors(setting, delivery),
    }


@torch.inference_mode()
def errors(setting: Setting, delivery: Delivery) -> dict[str, float]:
    """The largest relative error of a row: of its features, of the network's answers, and by chance."""
    rows = MorphedDataset(delivery, setting.testing)
    places = RowNumbers.of(delivery, setting.key, setting.testing).samples_of(rows.row_ids[:COMPARED])
    plain, twin = setting.tested[places], plain_twin(setting)
    morphed = torch.stack([samples_of(rows[index]) for index in range(COMPARED)])
    augmented = delivery.layer()
    if augmented is None:
        raise SystemExit("the delivery has no augmented layer")
    ours, wrong = (
        attached(setting.model, layer) for layer in (augmented, mole.augment(setting.layer, setting.other))
    )
    expected = first(twin)(plain)
    return {
        "error of features": largest(first(ours)(morphed), expected),
        "error of features, another key's layer": largest(first(wrong)(morphed), expected),
        "error of answers": largest(logits_of(ours, morphed), logits_of(twin, plain)),
    }


def plain_twin(setting: Setting) -> nn.Module:
    """The plain network, but for its first layer: its channels come in the order of the augmented one."""
    twin = copy.deepcopy(setting.model)
    weight = first(twin).weight
    weight.data = weight.data[setting.key.channel_order(len(weight))]
    return twin


def attached(model: nn.Module, layer: mole.AugmentedLayer) -> nn.Module:
    """A copy of the network with an augmented layer."""
    model = copy.deepcopy(model)
    attach(model, layer)
    return model


def first(model: nn.Module) -> Any:
    """The layer that sees the images."""
    return model.get_submodule(STEM)


def largest(found: Tensor, expected: Tensor) -> float:
    """The largest relative error of a row."""
    gap, size = ((rows.flatten(1)).norm(dim=1) for rows in (found - expected, expected))
    return float(f"{float((gap / size).max()):.1e}")


@torch.inference_mode()
def forward(setting: Setting) -> dict[str, Any]:
    """How much longer the network takes with an augmented layer, by turns with the plain one."""
    ours, batch = attached(setting.model, mole.augment(setting.layer, setting.key)), setting.tested[:BATCH]
    ratios = []
    for _ in range(ROUNDS + 1):
        seconds = [timed(partial(model, batch))[1] for model in (ours, setting.model)]
        ratios.append(seconds[0] / seconds[1])
    return {
        "batch": BATCH,
        "seconds_over_plain": round(statistics.median(ratios[1:]), 2),
        "each_round": [round(ratio, 2) for ratio in ratios[1:]],
    }


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and its seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


if __name__ == "__main__":
    main()
