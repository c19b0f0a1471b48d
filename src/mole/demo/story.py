"""Both roles, from the first layer to the accuracies: the paper's experiment on a small real data set.

The developer trains on a public part of Fashion-MNIST and exports its first layer. The provider reviews
it, makes a key and delivers its own part. The developer verifies the delivery and trains on it. Three arms,
as in the paper: plain data, morphed data with the augmented layer, morphed data without it; and a fourth
that the paper does not have, with a protected delivery. In the end the provider attacks its own delivery.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

import mole
from mole.audit.report import Report
from mole.audit.run import audit
from mole.demo.arms import BATCH, MEAN, SHAPE, STD, Arm, network, plain_data, train_arms
from mole.demo.eight_images import draw_picture
from mole.demo.protected_arm import protected_arm
from mole.errors import DeliveryError, MissingExtraError
from mole.exchange.delivery import AUGMENTED, Delivery
from mole.exchange.verify import verify
from mole.provider.deliver import deliver
from mole.provider.review import review_layer
from mole.quantities import counted
from mole.sources.bundled import Arrays, fashion_mnist
from mole.torch import export_first_layer, train

PUBLIC_EPOCHS = 4
BUDGET = 60.0  # seconds of attacks: the demo should not keep anybody waiting
Say = Callable[[str], None]


class Made(NamedTuple):
    """What the provider made, and how long it took."""

    key: mole.MorphKey
    delivery: Delivery
    seconds: float


def tell(folder: Path, *, seeds: int, say: Say) -> dict[str, Any]:
    """Run the whole story in a folder; what came out of it."""
    images = fashion_mnist()
    say("Developer: trains a small network on public images, and exports its first layer.")
    public_network = _public_network(images)
    layer = export_first_layer(public_network, SHAPE, mean=MEAN, std=STD)
    mole.save(layer, folder / "first-layer.safetensors")

    say("Provider: looks at what that layer would show of its images.")
    sample = layer.plain(images["x_private"][:64, np.newaxis])
    for finding in review_layer(layer, sample).findings:
        say(f"  {finding}")

    say("Provider: makes a key, morphs its images, and builds the augmented layer.")
    made = _deliver(images, layer, folder)

    say("Developer: checks the delivery.")
    _check(made.delivery, say)

    say(f"Developer: trains three ways, {counted(seeds, 'seed')} each.")
    arms = []
    for arm in train_arms(images, made.delivery, seeds):
        arms.append(arm)
        say(f"  {arm.name}: {100 * arm.mean:.1f} %")
    arms += _protected(images, public_network, folder, seeds, say)
    draw_picture(folder / "demo.png", images, layer, made.key)

    say("Provider: attacks its own delivery, to see what it hides and what it does not.")
    report = _attack(made, layer, folder)
    for verdict in report.verdicts:
        say(f"  {verdict.who}: {verdict.sentence}.")
    page = report.save(folder / "audit")
    return {
        "arms": {arm.name: _figures(arm) for arm in arms},
        **_sizes(images, made),
        "picture": str(folder / "demo.png"),
        "verdicts": {verdict.attacker.value: verdict.level.value for verdict in report.verdicts},
        "audit": str(page),
    }


def _public_network(images: Arrays) -> nn.Sequential:
    torch.manual_seed(100)
    model = network()
    train(model, plain_data(images, "public"), epochs=PUBLIC_EPOCHS, batch_size=BATCH, seed=100)
    return model


def _protected(
    images: Arrays, public_network: nn.Sequential, folder: Path, seeds: int, say: Say
) -> list[Arm]:
    """The arm that hands over less, where what it takes is installed."""
    say("Both: once more, protected: noisy features leave in the place of images, and a head comes back.")
    try:
        arm = protected_arm(images, public_network, folder, seeds)
    except MissingExtraError as error:
        say(f"  left out: {error}")
        return []
    say(f"  {arm.name}, whoever reads it: {100 * arm.mean:.1f} %")
    return [arm]


def _deliver(images: Arrays, layer: mole.FirstLayer, folder: Path) -> Made:
    start = time.perf_counter()
    np.savez(
        folder / "private.npz",
        x_train=images["x_private"], y_train=images["y_private"],
        x_test=images["x_test"], y_test=images["y_test"], classes=images["classes"],
    )  # fmt: skip
    np.savez(folder / "public.npz", x_train=images["x_public"], y_train=images["y_public"])
    sample = layer.plain(images["x_private"][:, np.newaxis])
    key = mole.MorphKey.generate(SHAPE, core="whitened", sample=sample)
    made = deliver(folder / "private.npz", layer, key, folder / "delivery", dtype="int8")
    return Made(key, made.delivery, time.perf_counter() - start)


def _check(delivery: Delivery, say: Say) -> None:
    for check in verify(delivery):
        say(f"  {check.what}: {check.detail}")
        if check.holds is False:
            raise DeliveryError(f"{delivery.label} is not as it was made")


def _attack(made: Made, layer: mole.FirstLayer, folder: Path) -> Report:
    """Audit the delivery with everything that its provider has."""
    return audit(
        made.delivery,
        key=made.key,
        layer=layer,
        truth=folder / "private.npz",
        public=folder / "public.npz",
        budget=BUDGET,
    )


def _figures(arm: Arm) -> dict[str, float]:
    return {
        "accuracy": round(arm.mean, 4),
        "spread": round(arm.spread, 4),
        "seconds": round(arm.seconds, 1),
    }


def _sizes(images: Arrays, made: Made) -> dict[str, Any]:
    manifest = made.delivery.manifest
    return {
        "plain bytes": int(images["x_private"].nbytes + images["x_test"].nbytes),
        "delivered data bytes": manifest.data_bytes,
        "augmented layer bytes": manifest.files[AUGMENTED].bytes,
        "deliver seconds": round(made.seconds, 1),
        "key fingerprint": made.key.fingerprint,
    }
