"""Protected deliveries of clothes, and what an audit finds in them."""

from pathlib import Path

import numpy as np

from fronts import feature_key, feature_layer, write_component_front
from mole.audit.run import audit
from mole.provider.deliver import deliver
from mole.provider.protect import Protect
from mole.sources.bundled import fashion_mnist

FEATURES, COUNT = 16, 400


def write_clothes(folder: Path) -> Path:
    """Clothes of 14x14 pixels, private and public, and a front that learned from the public ones."""
    bundled = fashion_mnist()
    for part in ("private", "public"):
        pixels = bundled[f"x_{part}"].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).astype(np.uint8)[:COUNT]
        np.savez(folder / f"{part}.npz", x_train=pixels, y_train=bundled[f"y_{part}"][:COUNT])
    write_component_front(folder / "front.onnx", np.load(folder / "public.npz")["x_train"], FEATURES)
    return folder


def made(place, out, *, bits=1.0, data="private.npz", **options):
    """Deliver clothes from that folder, with so many bits."""
    protect = Protect(place / "front.onnx", bits=bits)
    return deliver(
        place / data, feature_layer(FEATURES), feature_key(FEATURES), out, protect=protect, **options
    ).delivery


def attacked(place, delivery, **options):
    """The report on such a delivery, by an auditor who is given everything."""
    everything = {
        "key": feature_key(FEATURES), "layer": feature_layer(FEATURES), "truth": place / "private.npz",
        "public": place / "public.npz", "front": place / "front.onnx",
    }  # fmt: skip
    return audit(delivery, **everything | options)


def figures(report):
    """Its figures by name."""
    return {figure.name: figure for found in report.attacks for figure in found.figures}
