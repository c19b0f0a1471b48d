"""A delivery of some images, as attackers and the audit see it, and what the audit's attacks get from it.

The experiment plays the provider: it holds a key of its own, made for this delivery from a known seed, and
no key of anybody else's. What counts as success is the share of 256 images whose rebuilt picture is more
like its own original than like any of the others: 1 of 256 is chance.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from mole.attacks import ATTACKS
from mole.attacks.tools.views import Labels
from mole.audit.report import AttackReport
from mole.audit.run import audit_subject
from mole.audit.scoring import Truth
from mole.audit.subject import Subject
from mole.experiments.experiment import Result
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment, morph
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array, Shape

KERNEL = 3
AMONG = 256  # images that are compared
NO_LIMIT = 1e9  # seconds: every attack is tried
SCORES = ("reidentified", "correlation", "psnr")


class Images(NamedTuple):
    """Plain images, (n, channels, side, side), and their classes: the provider's, and other people's."""

    private: Array
    public: Array
    labels: Labels
    public_labels: Labels
    look: Normalisation


def delivered(
    images: Images, layer: FirstLayer, *, core: str, seed: int, kappa: int = 1, tile: int | None = None
) -> Subject:
    """What a delivery of the private images shows, with the truth beside it."""
    key = MorphKey.generate(
        images.private.shape[1:], kappa=kappa, tile=tile, core=core, insecure_seed=bytes([seed] * 32),
        sample=images.private if core == "whitened" else None,
    )  # fmt: skip
    return Subject(
        morphed=morph(images.private, key), kappa=key.kappa, layout="rows" if tile is None else "tiles",
        layer=layer, augmented=augment(layer, key), public=images.public, labels=images.labels,
        public_labels=images.public_labels,
        truth=Truth(images.private, images.look, np.asarray(key.channel_order(layer.channels))),
    )  # fmt: skip


def random_layer(shape: Shape, channels: int, seed: int) -> FirstLayer:
    """A convolution as it is before any training.

    It has no bias: delivered in the secret order, that would tell the order by itself.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        weight = nn.Conv2d(shape[0], channels, KERNEL).weight.detach().numpy()
    return FirstLayer.conv(weight, None, input_shape=shape, padding=KERNEL // 2)


def tried(subject: Subject, names: Sequence[str], seed: int) -> dict[str, AttackReport]:
    """What the audit says of attacks with these names."""
    attacks = [attack for attack in ATTACKS if attack.name in names]
    report = audit_subject(subject, attacks=attacks, budget=NO_LIMIT, seed=seed)
    return {one.attack.name: one for one in report.attacks}


def score_of(report: AttackReport) -> Result | None:
    """What an attack found, or None where it could not be tried."""
    if report.score is None:
        return None
    found = asdict(report.score)
    return {name: None if found[name] is None else round(found[name], 4) for name in SCORES}
