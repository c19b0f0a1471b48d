"""Every attack on the paper's setting: CIFAR-10 and VGG-16's first layer, for each core, kappa 1 and 3.

Give --images FILE.npz with CIFAR-10 (x_train, ...); otherwise cut-outs of a few photographs that come
with scikit-image are used. The first half of the images is private, the second half plays public images.
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import mole
from common import write_result
from mole.attacks import ATTACKS
from mole.audit.report import AttackReport
from mole.audit.run import audit_subject
from mole.audit.scoring import Truth
from mole.audit.subject import Subject
from mole.scheme.shapes import Array
from mole.sources.bundled import bundled_images
from vgg import INPUT_SHAPE, vgg_layer

PRIVATE, PUBLIC = 10_000, 10_000
# The paper's kappas, and one with a core of 64 rows, which the statistics of blocks find.
SETTINGS = [(core, kappa) for core in ("orthogonal", "gaussian", "whitened") for kappa in (1, 3)]
SETTINGS.append(("whitened", 48))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help=".npz with x_train")
    arguments = parser.parse_args()
    layer = replace(vgg_layer(), bias=None)  # with a bias, comparing it would give the order away
    private, public = load(arguments.images, layer)
    settings = []
    for core, kappa in SETTINGS:
        subject = subject_of(layer, private, public, core, kappa)
        report = audit_subject(subject, attacks=ATTACKS, budget=3600)
        settings.append({"core": core, "kappa": kappa, "attacks": told(report.attacks)})
        print(core, kappa, {found.attack.name: found.status.value for found in report.attacks}, flush=True)
    images = arguments.images.stem if arguments.images else "photographs"
    write_result("attacks", {"images": images, "private": len(private), "settings": settings})


def load(path: Path | None, layer: mole.FirstLayer) -> tuple[Array, Array]:
    """Plain images, private and public."""
    if path is None:
        images = bundled_images(INPUT_SHAPE, private=PRIVATE, public=PUBLIC)
        return layer.plain(images.private), layer.plain(images.public)
    with np.load(path) as arrays:
        pixels = arrays["x_train"][: PRIVATE + PUBLIC].transpose(0, 3, 1, 2)
    plain = layer.plain(pixels)
    return plain[:PRIVATE], plain[PRIVATE:]


def subject_of(layer: mole.FirstLayer, private: Array, public: Array, core: str, kappa: int) -> Subject:
    """What a delivery of the private images shows."""
    sample = private if core == "whitened" else None
    key = mole.MorphKey.generate(INPUT_SHAPE, kappa=kappa, core=core, sample=sample)
    return Subject(
        morphed=mole.morph(private, key),
        kappa=kappa,
        layer=layer,
        augmented=mole.augment(layer, key),
        public=public,
        truth=Truth(private, layer.normalisation, np.asarray(key.channel_order(layer.channels))),
    )


def told(attacks: tuple[AttackReport, ...]) -> dict[str, Any]:
    """Status, seconds, words and scores of each attack."""
    return {
        found.attack.name: {
            "attacker": found.attack.attacker.value,
            "status": found.status.value,
            "seconds": found.seconds,
            "words": found.words,
            **{name: _rounded(value) for name, value in _measured(found).items()},
        }
        for found in attacks
    }


def _measured(found: AttackReport) -> dict[str, Any]:
    figures = {} if found.score is None else asdict(found.score)
    return {name: value for name, value in figures.items() if value is not None}


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
