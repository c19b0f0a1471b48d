"""Both roles, from the first layer to the accuracies: the paper's experiment on a small real data set.

The developer trains on a public part of Fashion-MNIST and exports its first layer. The provider reviews
it, makes a key and delivers its own part. The developer verifies the delivery and trains on it. Three arms,
as in the paper: plain data, morphed data with the augmented layer, morphed data without it. In the end the
provider attacks its own delivery.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.data import TensorDataset

import mole
from mole.audit.from_delivery import Known, subject_of_delivery
from mole.audit.paper_figures import paper_figures
from mole.audit.report import Report
from mole.audit.run import audit
from mole.audit.write import write_report
from mole.errors import DeliveryError
from mole.exchange.encoding import Encoding
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.review import review_layer
from mole.sources.opening import open_source
from mole.storage.stores import LocalStore
from mole.torch import MorphedDataset, attach, evaluate, export_first_layer, train

SHAPE, CLASSES = (1, 28, 28), 10
MEAN, STD = (0.286,), (0.353,)  # of Fashion-MNIST
EPOCHS, PUBLIC_EPOCHS, BATCH = 5, 4, 64
Say = Callable[[str], None]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Arm:
    """One way to train: its accuracies on the test set, one a seed, and its seconds."""

    name: str
    accuracies: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return statistics.mean(self.accuracies)

    @property
    def spread(self) -> float:
        """The standard deviation of accuracies."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0


def network() -> nn.Module:
    """Two convolutions: enough for clothes of 28x28, and quick on two CPU cores."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, CLASSES),
    )  # fmt: skip


def load_images() -> Arrays:
    """The part of Fashion-MNIST that comes with the package."""
    path = files("mole.sources").joinpath("data/fashion-mnist.npz")
    with path.open("rb") as file, np.load(file) as arrays:
        return {name: arrays[name] for name in arrays.files}


def tell(folder: Path, *, seeds: int, say: Say) -> dict[str, Any]:
    """Run the whole story in a folder; what came out of it."""
    images = load_images()
    say("Developer: trains a small network on public images, and exports its first layer.")
    layer = _first_layer(images)
    mole.save(layer, folder / "first-layer.safetensors")

    say("Provider: looks at what that layer would show of its images.")
    sample = layer.plain(images["x_private"][:64, np.newaxis])
    for finding in review_layer(layer, sample).findings:
        say(f"  {finding}")

    say("Provider: makes a key, morphs its images, and builds the augmented layer.")
    key, delivered, seconds = _deliver(images, layer, folder)

    say("Developer: checks the delivery.")
    for check in verify(folder / "delivery"):
        say(f"  {check.what}: {check.detail}")
        if not check.holds:
            raise DeliveryError(f"{folder / 'delivery'} is not as it was made")

    say(f"Developer: trains three ways, {seeds} seeds each.")
    arms = _arms(folder, images, layer, seeds, say)
    draw_picture(folder / "demo.png", images, layer, key)

    say("Provider: attacks its own delivery, to see what it hides and what it does not.")
    report, page = attack_delivery(folder, layer, key)
    for verdict in report.verdicts:
        say(f"  {verdict.who}: {verdict.sentence}.")
    return {
        "arms": {
            arm.name: {
                "accuracy": round(arm.mean, 4),
                "spread": round(arm.spread, 4),
                "seconds": round(arm.seconds, 1),
            }
            for arm in arms
        },
        "plain bytes": int(images["x_private"].nbytes + images["x_test"].nbytes),
        "delivered data bytes": delivered.data_bytes,
        "augmented layer bytes": delivered.files["augmented-layer.safetensors"].bytes,
        "deliver seconds": round(seconds, 1),
        "key fingerprint": key.fingerprint,
        "picture": str(folder / "demo.png"),
        "verdicts": {verdict.attacker: verdict.level for verdict in report.verdicts},
        "audit": str(page),
    }


def _first_layer(images: Arrays) -> mole.FirstLayer:
    torch.manual_seed(100)
    model = network()
    public = _plain(images["x_public"], images["y_public"])
    train(model, public, epochs=PUBLIC_EPOCHS, batch_size=BATCH, seed=100)
    return export_first_layer(model, SHAPE, mean=MEAN, std=STD)


def _deliver(images: Arrays, layer: mole.FirstLayer, folder: Path) -> tuple[mole.MorphKey, Any, float]:
    start = time.perf_counter()
    np.savez(
        folder / "private.npz",
        x_train=images["x_private"], y_train=images["y_private"],
        x_test=images["x_test"], y_test=images["y_test"], classes=images["classes"],
    )  # fmt: skip
    np.savez(folder / "public.npz", x_train=images["x_public"])
    sample = layer.plain(images["x_private"][:, np.newaxis])
    key = mole.MorphKey.generate(SHAPE, core="whitened", sample=sample)
    made = deliver(folder / "private.npz", layer, key, folder / "delivery", dtype="int8")
    return key, made.delivery.manifest, time.perf_counter() - start


def _plain(images: npt.NDArray[np.uint8], labels: npt.NDArray[Any]) -> TensorDataset:
    plain = mole.Normalisation(MEAN, STD).apply(images[:, np.newaxis])
    return TensorDataset(torch.from_numpy(plain), torch.from_numpy(labels.astype(np.int64)))


def _arms(folder: Path, images: Arrays, layer: mole.FirstLayer, seeds: int, say: Say) -> list[Arm]:
    morphed = tuple(MorphedDataset(str(folder / "delivery"), split) for split in ("train", "test"))
    plain = (
        _plain(images["x_private"], images["y_private"]), _plain(images["x_test"], images["y_test"]),
    )  # fmt: skip
    augmented = mole.load(folder / "delivery" / "augmented-layer.safetensors")
    ways = {
        "plain data": (plain, None),
        "morphed, augmented layer": (morphed, augmented),
        "morphed, no augmented layer": (tuple(_without_key(part) for part in morphed), None),
    }
    arms = []
    for name, ((data, test), replacement) in ways.items():
        start = time.perf_counter()
        accuracies = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            model = network()
            if isinstance(replacement, mole.AugmentedLayer):
                attach(model, replacement)
            train(model, data, epochs=EPOCHS, batch_size=BATCH, seed=seed)
            accuracies.append(evaluate(model, test).accuracy)
        arms.append(Arm(name, tuple(accuracies), time.perf_counter() - start))
        say(f"  {name}: {100 * arms[-1].mean:.1f} %")
    return arms


def _without_key(data: MorphedDataset) -> TensorDataset:
    """Morphed rows as if they were images: what a network without the augmented layer would get."""
    rows = torch.stack([data[index][0] for index in range(len(data))])
    return TensorDataset(rows, torch.from_numpy(np.asarray(data.labels)))


def draw_picture(path: Path, images: Arrays, layer: mole.FirstLayer, key: mole.MorphKey) -> None:
    """Eight images: plain, morphed, recovered with the key, recovered with a wrong key."""
    from PIL import Image  # noqa: PLC0415  (only here)

    chosen = [int(np.flatnonzero(images["y_test"] == label)[0]) for label in range(8)]
    plain = layer.plain(images["x_test"][chosen][:, np.newaxis])
    morphed = mole.morph(plain, key)
    stored = Encoding.fit("int8", mole.unroll(morphed))
    received = stored.decode(stored.encode(mole.unroll(morphed))).reshape(plain.shape)
    wrong = mole.MorphKey.generate(SHAPE)
    rows = [plain, morphed, mole.unmorph(received, key), mole.unmorph(received, wrong)]
    sheet = np.vstack([np.hstack([_grey(image[0]) for image in row]) for row in rows])
    picture = Image.fromarray(sheet)
    picture.resize((3 * picture.width, 3 * picture.height), Image.Resampling.NEAREST).save(path)


def _grey(image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    low, high = np.percentile(image, [1, 99])
    scaled = np.clip((image - low) / max(float(high - low), 1e-9), 0, 1)
    return np.pad((255 * scaled).astype(np.uint8), 1, constant_values=255)


BUDGET = 60.0  # seconds: the demo should not keep anybody waiting


def attack_delivery(folder: Path, layer: mole.FirstLayer, key: mole.MorphKey) -> tuple[Report, Path]:
    """Audit the demo's delivery with what its provider has; the report, and its page."""
    known = Known(
        key=key,
        layer=layer,
        truth=open_source(str(folder / "private.npz")),
        public=open_source(str(folder / "public.npz")),
    )
    subject = subject_of_delivery(LocalStore(folder / "delivery"), known)
    report = audit(subject, plots=paper_figures(), budget=BUDGET)
    return report, write_report(report, folder / "audit")
