"""What attackers get, against kappa, the side of tiles, the number of known pairs, and the core.

On the Fashion-MNIST that ships with the package: some images are delivered, others are public, and the
audit's own attacks are run on what each attacker has. What counts is the share of 256 images whose rebuilt
picture is more like its own original than like any of the others: 1 of 256 is chance. Of known pairs it is
the error of images that were set aside.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from mole.attacks import ATTACKS
from mole.attacks.tools.views import Labels
from mole.audit.report import AttackReport
from mole.audit.run import audit_subject
from mole.audit.scoring import Truth
from mole.audit.subject import Subject
from mole.experiments.channel_scores import spread_of
from mole.progress import Progress, no_progress
from mole.provider.keys import MorphKey
from mole.provider.keys.key import augment, morph
from mole.scheme.first_layer import FirstLayer
from mole.scheme.normalisation import Normalisation
from mole.scheme.shapes import Array
from mole.sources.bundled import fashion_mnist

LOOK = Normalisation((0.286,), (0.353,))  # of Fashion-MNIST
CHANNELS, KERNEL = 16, 3
NO_LIMIT = 1e9  # seconds: every attack is tried
OUTSIDERS = ("pca-matching", "block-statistics", "ica-small-cores", "moment-matching")
DEVELOPERS = ("channel-fingerprint",)
WITHOUT_LABELS = "moment-matching, no labels"
Row = dict[str, Any]
Keep = Callable[[tuple[object, ...], Callable[[], Row]], Row]


def _keep_nothing(facts: tuple[object, ...], make: Callable[[], Row]) -> Row:
    return make()


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is tried.

    Attributes:
        rows: images that are delivered, and as many that are public.
        shrink: how many pixels of a side become one.
        kappas, cores: of deliveries in blocks of rows; cores at kappa = 1.
        tiles, border: sides of tiles, and the black border that lets them fit.
        pairs_at: kappas at which known pairs are counted.
        keys: each with results of its own.
    """

    rows: int = 3000
    shrink: int = 1
    kappas: tuple[int, ...] = (1, 2, 4, 7, 14, 28, 49, 98, 196)
    cores: tuple[str, ...] = ("orthogonal", "gaussian", "whitened")
    tiles: tuple[int, ...] = (2, 4, 8, 16)
    border: int = 2
    pairs_at: tuple[int, ...] = (1, 2, 4, 7, 14)
    keys: int = 3


TINY = Effort(
    rows=600, shrink=2, kappas=(1, 14), cores=("orthogonal", "whitened"), tiles=(2, 4), border=1,
    pairs_at=(1, 7), keys=1,
)  # fmt: skip


class Images(NamedTuple):
    """Plain images, (n, 1, side, side), and their classes: the provider's, and other people's."""

    private: Array
    public: Array
    labels: Labels
    public_labels: Labels


def fashion(effort: Effort, border: int = 0) -> Images:
    """The images of the package as plain data, smaller, with a border, or as they are."""
    given, parts, labels = fashion_mnist(), [], []
    for kind in ("private", "public"):
        pixels = given[f"x_{kind}"][: effort.rows, np.newaxis].astype(np.float32) / 255
        side = pixels.shape[-1] // effort.shrink
        small = pixels.reshape(len(pixels), 1, side, effort.shrink, side, effort.shrink).mean(axis=(3, 5))
        parts.append(LOOK.apply(np.pad(small, ((0, 0), (0, 0), (border, border), (border, border)))))
        labels.append(given[f"y_{kind}"][: effort.rows].astype(np.int64))
    return Images(*parts, *labels)


def measure(effort: Effort, keep: Keep = _keep_nothing, progress: Progress = no_progress) -> Row:
    """Every attack in every setting, each kept when it is finished; for JSON."""
    plain, bordered = fashion(effort), fashion(effort, effort.border)
    side = plain.private.shape[-1]
    settings = [*_settings(effort)]
    found: dict[str, list[Row]] = {panel: [] for panel in ("kappa", "tile", "pairs", "core")}
    for number, (panel, given) in enumerate(settings):
        progress(number, len(settings))
        images = bordered if panel == "tile" else plain
        several = [_kept(keep, effort, images, panel, given, key) for key in range(effort.keys)]
        found[panel].append({**given, "core_side": several[0].pop("core_side"), **_together(several)})
    progress(len(settings), len(settings))
    sizes = {"images": "Fashion-MNIST", "side": side, "tiled_side": bordered.private.shape[-1]}
    return {**sizes, "rows": effort.rows, "keys": effort.keys, "among": 256, "channels": CHANNELS, **found}


def _settings(effort: Effort) -> Iterator[tuple[str, Row]]:
    yield from (("kappa", {"kappa": kappa, "core": "whitened"}) for kappa in effort.kappas)
    yield from (("tile", {"tile": tile, "core": "whitened"}) for tile in effort.tiles)
    yield from (("pairs", {"kappa": kappa, "core": "orthogonal"}) for kappa in effort.pairs_at)
    yield from (("core", {"kappa": 1, "core": core}) for core in effort.cores)


def _kept(keep: Keep, effort: Effort, images: Images, panel: str, given: Row, seed: int) -> Row:
    about = ("attacks", panel, *given.items(), seed, effort.rows, effort.shrink, effort.border)
    return {**keep(about, lambda: _measured(images, panel, given, seed))}


def _measured(images: Images, panel: str, given: Row, seed: int) -> Row:
    """One panel's attacks on one delivery."""
    subject = delivered(images, seed=seed, **given)
    side = int(np.prod(subject.input_shape)) // subject.kappa
    if panel == "pairs":
        return {"core_side": side, **_pairs(subject, seed)}
    tried = _tried(subject, (*OUTSIDERS, *DEVELOPERS), seed)
    if panel == "core":
        blind = replace(subject, labels=None, public_labels=None)
        tried[WITHOUT_LABELS] = _tried(blind, ("moment-matching",), seed)["moment-matching"]
    return {"core_side": side, **{name: _score(report) for name, report in tried.items()}}


def delivered(images: Images, *, core: str, seed: int, kappa: int = 1, tile: int | None = None) -> Subject:
    """What a delivery of the private images shows, with the truth beside it.

    The first layer has no bias: delivered in the secret order, it would tell the order by itself.
    """
    shape = images.private.shape[1:]
    key = MorphKey.generate(
        shape, kappa=kappa, tile=tile, core=core, sample=images.private if core == "whitened" else None,
        insecure_seed=bytes([seed] * 32),
    )  # fmt: skip
    layer = random_layer(shape, seed)
    return Subject(
        morphed=morph(images.private, key), kappa=key.kappa, layout="rows" if tile is None else "tiles",
        layer=layer, augmented=augment(layer, key), public=images.public, labels=images.labels,
        public_labels=images.public_labels,
        truth=Truth(images.private, LOOK, np.asarray(key.channel_order(layer.channels))),
    )  # fmt: skip


def random_layer(shape: Sequence[int], seed: int, channels: int = CHANNELS) -> FirstLayer:
    """A convolution as it is before any training, without a bias."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        weight = nn.Conv2d(shape[0], channels, KERNEL).weight.detach().numpy()
    return FirstLayer.conv(weight, None, input_shape=tuple(shape), padding=KERNEL // 2)


def _tried(subject: Subject, names: Sequence[str], seed: int) -> dict[str, AttackReport]:
    attacks = [attack for attack in ATTACKS if attack.name in names]
    report = audit_subject(subject, attacks=attacks, budget=NO_LIMIT, seed=seed)
    return {one.attack.name: one for one in report.attacks}


def _score(report: AttackReport) -> Row | None:
    """What an attack found, or None where it could not be tried."""
    if report.score is None:
        return None
    found = asdict(report.score)
    return {name: round(found[name], 4) for name in ("reidentified", "correlation", "psnr")}


def _pairs(subject: Subject, seed: int) -> Row:
    """The error on images set aside against the number of known pairs; and with the augmented layer."""
    tried = _tried(subject, ("known-pairs", "known-image"), seed)
    facts, one = tried["known-pairs"].facts, tried["known-image"]
    error = None if one.score is None or one.score.rmse is None else float(f"{one.score.rmse:.2g}")
    return {
        "counted": facts["pairs that determine the core"],
        "published": facts["pairs that the paper asks for"],
        "enough": facts["pairs that were enough"],
        "curve": facts["error against pairs"],
        "with_layer": {"pairs": one.facts.get("known images used"), "error": error},
    }


def _together(several: Sequence[Row]) -> Row:
    """Results of several keys as one: spreads of numbers; of curves, which hardly differ, the first."""
    found: Row = {}
    for name, first in several[0].items():
        if name == "core_side" or first is None or not isinstance(first, dict) or "psnr" not in first:
            found[name] = first
        else:
            found[name] = {part: spread_of([one[name][part] for one in several]) for part in first}
    return found
