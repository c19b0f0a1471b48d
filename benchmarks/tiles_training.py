"""A ResNet learns from photos morphed in tiles as it does from plain ones.

Give --data with photos of 64x64 in class folders: DATA/train/CLASS/*.jpg and DATA/val (or test). Every seed
has a network of its own, a key and deliveries (tiles of side 8, a whitened core). The network is trained in
several ways from the same first weights, and tested after each epoch: on plain photos; on plain photos with
its first layer frozen, as an augmented one is; on a delivery; on one of 8-bit values; and on that without
the augmented layer, from which it should learn less (one seed only).

Behind an augmented layer channels come in another order, and so do the rows of a delivery. Those of the
first two ways agree with the delivery's as two seeds do, not step by step. So two more ways take plain
photos in the order of the delivery's rows, and a frozen first layer in the order of its channels. That is
the training on the delivery but for rounding. The second has each number off by a millionth at random: what
comes of that is chance, and as much as that may lie between the first and the delivery.

With --public FILE.npz (x_train, y_train) the first layer comes from a network of the same seed that was
trained on such images, as the scheme has it; without, it is as random as the others, and stays so where it
is frozen.

What is finished is kept in --work, and the same command goes on from there; delete it to begin anew.
"""

import argparse
import json
import shutil
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.utils.data import TensorDataset
from transformers import ResNetConfig, ResNetForImageClassification

import mole
from class_folders import MEAN, STD, plain_data, splits_of
from common import write_result
from learning_curves import agreement, by_seed, spread
from mole.exchange.delivery import Delivery
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.shards import Dtype
from mole.provider.deliver import deliver
from mole.provider.row_numbers import RowNumbers
from mole.torch import MorphedDataset, attach, export_first_layer, train
from mole.torch.batches import samples_and_labels

SHAPE, TILE, CLASSES = (3, 64, 64), 8, 10
SEEDS, EPOCHS, BATCH, RATE = 3, 6, 64, 3e-3
MOST_PUBLIC = 10_000
MILLIONTH = 1e-6
PLAIN, FROZEN, ORDERED, TOUCHED, TILES, SMALL, FORGOTTEN = (
    "plain", "plain, first layer frozen", "frozen, in the delivery's order",
    "frozen, in the delivery's order, off by a millionth",
    "tiles", "tiles, 8 bits", "tiles, augmented layer left out",
)  # fmt: skip
DTYPES: dict[str, Dtype] = {
    ORDERED: "float32", TOUCHED: "float32", TILES: "float32", SMALL: "int8", FORGOTTEN: "int8",
}  # fmt: skip
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "tiles-training.svg"
Data = MorphedDataset | TensorDataset


class Way(NamedTuple):
    """What to train on, and to be tested on."""

    data: Data
    test: Data


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="photos of 64x64 in class folders")
    parser.add_argument("--public", type=Path, help=".npz of other images, to train a first layer on")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how often everything is done")
    parser.add_argument("--work", type=Path, default=Path("tiles-training"), help="keeps what is finished")
    arguments = parser.parse_args()
    arguments.work /= arguments.public.stem if arguments.public else "random"
    arguments.work.mkdir(parents=True, exist_ok=True)
    plain = Way(*(plain_data(arguments.data, split, SHAPE[1]) for split in splits_of(arguments.data)))
    runs = {}
    for seed in range(arguments.seeds):
        kernels = trained_kernels(arguments.public, seed, arguments.work) if arguments.public else None
        runs[seed] = run(seed, arguments.data, plain, arguments.work, kernels)
    public = (
        f"trained on {MOST_PUBLIC:,} images of {arguments.public.stem}" if arguments.public else "random"
    )
    result = {
        "images": arguments.data.name, "first_layer": public,
        "rows": {"train": len(plain.data), "test": len(plain.test)},
        "tile": TILE, "core": "whitened", "epochs": EPOCHS, "batch_size": BATCH,
        "learning_rate": RATE, "seeds": arguments.seeds, **summary_of(runs),
    }  # fmt: skip
    write_result("tiles_training" if arguments.public else "tiles_training_random_layer", result)
    if arguments.public:
        draw(result["arms"], PICTURE)


def network(seed: int, kernels: torch.Tensor | None = None, classes: int = CLASSES) -> nn.Module:
    """A narrow ResNet with the stem of the large ones, 7x7 and stride 2: its kernels random, or given."""
    torch.manual_seed(seed)
    sizes = {"embedding_size": 16, "hidden_sizes": [16, 32, 64], "depths": [1, 1, 1]}
    config = ResNetConfig(**sizes, layer_type="basic", num_labels=classes)  # type: ignore[arg-type, call-arg]
    model: nn.Module = ResNetForImageClassification(config)  # type: ignore[no-untyped-call]
    if kernels is not None:
        first(model).weight.data.copy_(kernels)
    return model


def trained_kernels(public: Path, seed: int, work: Path) -> torch.Tensor:
    """The first layer of such a network after training on other images, enlarged to the photos' size."""
    kept = work / f"kernels-{seed}.npy"
    if not kept.exists():
        with np.load(public) as arrays:
            pixels, labels = (arrays[name][:MOST_PUBLIC] for name in ("x_train", "y_train"))
        enlarged = pixels.repeat(SHAPE[1] // pixels.shape[1], axis=1).repeat(
            SHAPE[2] // pixels.shape[2], axis=2
        )
        plain = mole.Normalisation(MEAN, STD).apply(enlarged.transpose(0, 3, 1, 2))
        data = TensorDataset(torch.from_numpy(plain), torch.from_numpy(labels.astype(np.int64)))
        model = network(seed, classes=int(labels.max()) + 1)
        train(model, data, epochs=EPOCHS, batch_size=BATCH, learning_rate=RATE, seed=seed)
        np.save(kept, first(model).weight.detach().numpy())
    return torch.from_numpy(np.load(kept))


def run(seed: int, data: Path, plain: Way, work: Path, kernels: torch.Tensor | None) -> dict[str, Any]:
    """Every arm of one seed, those from before included."""
    kept = work / f"seed-{seed}.json"
    arms: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    wanted = [PLAIN, FROZEN, ORDERED, TOUCHED, TILES, SMALL, *([FORGOTTEN] if seed == 0 else [])]
    for arm in wanted:
        if arm in arms:
            continue
        model, way = prepared(arm, seed, data=data, plain=plain, work=work, kernels=kernels)
        epochs = train(
            model,
            way.data,
            epochs=EPOCHS,
            batch_size=BATCH,
            learning_rate=RATE,
            seed=seed,
            validation=way.test,
        )
        arms[arm] = {
            "accuracy": [round(epoch.validation.accuracy, 4) for epoch in epochs if epoch.validation],
            "loss": [epoch.loss for epoch in epochs],
        }
        kept.write_text(json.dumps(arms))
        print(seed, arm, arms[arm], flush=True)
    for dtype in DTYPES.values():
        shutil.rmtree(delivery_folder(work, seed, dtype), ignore_errors=True)
    return {arm: arms[arm] for arm in wanted}


def prepared(
    arm: str, seed: int, *, data: Path, plain: Way, work: Path, kernels: torch.Tensor | None
) -> tuple[nn.Module, Way]:
    """The network of an arm before it learns, and what it learns from."""
    model = network(seed, kernels)
    if arm in (FROZEN, ORDERED, TOUCHED):
        first(model).requires_grad_(requires_grad=False)
    if arm not in DTYPES:
        return model, plain
    key = key_of(seed, plain.data)
    layer = export_first_layer(network(seed, kernels), SHAPE, mean=MEAN, std=STD)
    delivery = delivered(data, layer, key, delivery_folder(work, seed, DTYPES[arm]), DTYPES[arm])
    morphed = [MorphedDataset(delivery, split) for split in splits_of(data)]
    way = Way(*morphed)
    if arm in (ORDERED, TOUCHED):
        weight = first(model).weight
        weight.data = weight.data[key.channel_order(len(weight))]
        noise = MILLIONTH if arm == TOUCHED else 0.0
        return model, Way(
            *(in_order_of(rows, key, one, noise) for rows, one in zip(morphed, plain, strict=True))
        )
    if arm == FORGOTTEN:
        return model, Way(*map(as_images, way))
    if (augmented := delivery.layer()) is not None:
        attach(model, augmented)
    return model, way


def delivery_folder(work: Path, seed: int, dtype: Dtype) -> Path:
    """Where the delivery of a seed is kept until all its arms are trained: they share an order of rows."""
    return work / f"delivery-{seed}-{dtype}"


def delivered(
    data: Path, layer: mole.FirstLayer, key: mole.MorphKey, folder: Path, dtype: Dtype
) -> Delivery:
    """The photos, morphed; what is there was made from the same."""
    if (folder / MANIFEST).exists():
        return Delivery.open(folder)
    return deliver(data, layer, key, folder, dtype=dtype, mode="RGB", class_names=True).delivery


def in_order_of(rows: MorphedDataset, key: mole.MorphKey, plain: Data, noise: float) -> TensorDataset:
    """Plain photos as the rows of a delivery come, each number off by that share of it or so."""
    order = RowNumbers.of(rows.delivery, key, rows.split).samples_of(rows.row_ids)
    photos, labels = whole(plain)
    if not np.array_equal(labels[order].numpy(), rows.labels if rows.labels is not None else []):
        raise SystemExit("the delivery holds other photos: delete what is kept, and call again")
    off = noise * torch.randn(photos.shape, generator=torch.Generator().manual_seed(0))
    twin = TensorDataset(photos[order] * (1 + off), labels[order])
    twin.sampler = rows.sampler  # type: ignore[attr-defined]  # so that training meets them in one order
    return twin


def key_of(seed: int, plain: Data) -> mole.MorphKey:
    """A key that learned from the photos to be delivered."""
    sample = whole(plain)[0].numpy()
    return mole.MorphKey.generate(
        SHAPE, tile=TILE, core="whitened", sample=sample, insecure_seed=bytes([seed] * 32)
    )


def first(model: nn.Module) -> nn.Conv2d:
    """The first layer."""
    return next(module for module in model.modules() if isinstance(module, nn.Conv2d))


def as_images(data: Data) -> TensorDataset:
    """Morphed rows as if they were images, which is what a network without the augmented layer gets."""
    return TensorDataset(*whole(data))


def whole(data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """All samples of a data set, and their labels."""
    samples, labels = zip(*(samples_and_labels(data[index]) for index in range(len(data))), strict=True)
    return torch.stack(samples), torch.tensor([int(label) for label in labels])


def summary_of(runs: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Each arm over its seeds, and whether tiles agree with the same training on plain photos."""
    arms: dict[str, Any] = {}
    for arm in runs[0]:
        curves = [run[arm]["accuracy"] for run in runs.values() if arm in run]
        points = list(zip(*curves, strict=True))
        arms[arm] = {
            "mean": [round(statistics.mean(point), 4) for point in points],
            "standard deviation": [round(spread(point), 4) for point in points],
            "accuracy": curves,
        }
    pairs = (
        (PLAIN, TILES), (FROZEN, TILES), (FROZEN, SMALL), (FROZEN, ORDERED), (ORDERED, TILES),
        (ORDERED, TOUCHED),
    )  # fmt: skip
    return {
        "arms": arms,
        **{
            f"{one} against {other}": {**agreement(arms[one], arms[other]), **by_seed(runs, one, other)}
            for one, other in pairs
        },
    }


def draw(arms: dict[str, Any], path: Path) -> None:
    """The curves, each with a band of one standard deviation."""
    with mpl.rc_context({"svg.hashsalt": "tiles", "font.size": 9}):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        epochs = range(1, EPOCHS + 1)
        for arm, style in (
            (PLAIN, ":"), (FROZEN, "--"), (ORDERED, "--"), (TILES, "-"), (SMALL, "-"), (FORGOTTEN, "-."),
        ):  # fmt: skip
            mean, spread = arms[arm]["mean"], arms[arm]["standard deviation"]
            (line,) = axes.plot(epochs, [100 * value for value in mean], style, label=arm)
            low, high = (
                [100 * (m + sign * s) for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1)
            )
            axes.fill_between(epochs, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set(xlabel="epochs", ylabel="test accuracy, %", ylim=(0, None), xticks=list(epochs))
        axes.legend(loc="lower right", frameon=False)
        axes.grid(alpha=0.3)
        figure.savefig(path, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
