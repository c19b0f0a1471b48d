"""What attackers get, against kappa, the side of tiles, the number of known pairs, and the core.

On the Fashion-MNIST that ships with the package: some images are delivered, others are public, and the
audit's own attacks are run on what each attacker has. Of known pairs the error counts of images that were
set aside; of all else the share of images that are picked out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mole.audit.subject import Subject
from mole.experiments.attack_panels import ALT, draw, report
from mole.experiments.attacked_deliveries import (
    AMONG,
    Images,
    delivered,
    random_layer,
    score_of,
    tried,
)  # fmt: skip
from mole.experiments.channel_scores import spread_of
from mole.experiments.experiment import Drawing, Experiment, Request, Result
from mole.scheme.normalisation import Normalisation
from mole.sources.bundled import fashion_mnist

LOOK = Normalisation((0.286,), (0.353,))  # of Fashion-MNIST
CHANNELS = 16
OUTSIDERS = ("pca-matching", "block-statistics", "ica-small-cores", "moment-matching")
DEVELOPER = "channel-fingerprint"
WITHOUT_LABELS = "moment-matching, no labels"


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is tried.

    Attributes:
        rows: images that are delivered, and as many that are public.
        shrink: how many pixels of a side become one.
        kappas, cores: of deliveries in blocks of rows; cores at kappa = 1.
        tiles: sides of tiles ...
        tiled_side: ... and of images with a black border, which they fit.
        pairs_at: kappas at which known pairs are counted.
    """

    rows: int = 1000
    shrink: int = 2
    kappas: tuple[int, ...] = (1, 2, 4, 7, 14, 28, 49, 98)
    cores: tuple[str, ...] = ("orthogonal", "gaussian", "whitened")
    tiles: tuple[int, ...] = (2, 4, 8)
    tiled_side: int = 16
    pairs_at: tuple[int, ...] = (1, 2, 4, 7, 14)


EFFORTS = {
    "cpu": Effort(),
    "tiny": Effort(
        rows=300, shrink=4, kappas=(7,), cores=("orthogonal",), tiles=(2,), tiled_side=8, pairs_at=(1, 7)
    ),
}


def measure(request: Request) -> Result:
    """Every attack in every setting, each kept when it is finished."""
    effort = EFFORTS[request.preset]
    settings = [*_settings(effort)]
    found: dict[str, list[Result]] = {panel: [] for panel in ("kappa", "tile", "pairs", "core")}
    for number, (panel, given) in enumerate(settings):
        request.progress(number, len(settings))
        several = []
        for seed in range(request.seeds):
            facts = ("figure-attacks", panel, *given.items(), seed, effort.rows, effort.shrink)
            several.append(request.store.piece(facts, partial(_measured, effort, panel, given, seed)))
        found[panel].append({**given, **_together(several)})
        request.say(
            f"attacks against {panel}: {', '.join(f'{name} {value}' for name, value in given.items())}"
        )
    request.progress(len(settings), len(settings))
    sides = {"side": 28 // effort.shrink, "tiled_side": effort.tiled_side}
    return {
        "images": "Fashion-MNIST",
        **sides,
        "rows": effort.rows,
        "among": min(AMONG, effort.rows // 2),
        **found,
    }


def fashion(effort: Effort, side: int) -> Images:
    """The images of the package as plain data, smaller or as they are, with a border up to a side."""
    given, parts, labels = fashion_mnist(), [], []
    for kind in ("private", "public"):
        pixels = given[f"x_{kind}"][: effort.rows, np.newaxis].astype(np.float32) / 255
        own = pixels.shape[-1] // effort.shrink
        small = pixels.reshape(len(pixels), 1, own, effort.shrink, own, effort.shrink).mean(axis=(3, 5))
        border = ((side - own) // 2, -((own - side) // 2))
        parts.append(LOOK.apply(np.pad(small, ((0, 0), (0, 0), border, border))))
        labels.append(given[f"y_{kind}"][: effort.rows].astype(np.int64))
    return Images(parts[0], parts[1], labels[0], labels[1], LOOK)


def _settings(effort: Effort) -> Iterator[tuple[str, Result]]:
    yield from (("kappa", {"kappa": kappa, "core": "whitened"}) for kappa in effort.kappas)
    yield from (("tile", {"tile": tile, "core": "whitened"}) for tile in effort.tiles)
    yield from (("pairs", {"kappa": kappa, "core": "orthogonal"}) for kappa in effort.pairs_at)
    yield from (("core", {"kappa": 1, "core": core}) for core in effort.cores)


def _measured(effort: Effort, panel: str, given: Result, seed: int) -> Result:
    """One panel's attacks on one delivery."""
    images = fashion(effort, effort.tiled_side if panel == "tile" else 28 // effort.shrink)
    layer = random_layer(images.private.shape[1:], CHANNELS, seed)
    subject = delivered(images, layer, seed=seed, **given)
    side = int(np.prod(subject.input_shape)) // subject.kappa
    if panel == "pairs":
        return {"core_side": side, **_pairs(subject, seed)}
    reports = tried(subject, (*OUTSIDERS, DEVELOPER), seed)
    if panel == "core":
        blind = replace(subject, labels=None, public_labels=None)
        reports[WITHOUT_LABELS] = tried(blind, ("moment-matching",), seed)["moment-matching"]
    return {"core_side": side, **{name: score_of(one) for name, one in reports.items()}}


def _pairs(subject: Subject, seed: int) -> Result:
    """The error on images set aside against the number of known pairs; and with the augmented layer."""
    reports = tried(subject, ("known-pairs", "known-image"), seed)
    facts, one = reports["known-pairs"].facts, reports["known-image"]
    error = None if one.score is None or one.score.rmse is None else float(f"{one.score.rmse:.2g}")
    return {
        "counted": facts["pairs that determine the core"],
        "published": facts["pairs that the paper asks for"],
        "enough": facts["pairs that were enough"],
        "curve": facts["error against pairs"],
        "with_layer": {"pairs": one.facts.get("known images used"), "error": error},
    }


def _together(several: Sequence[Result]) -> Result:
    """Results of several keys as one: spreads of scores; of curves, which hardly differ, the first."""
    return {
        name: {part: spread_of([one[name][part] for one in several]) for part in first}
        if isinstance(first, dict) and "psnr" in first
        else first
        for name, first in several[0].items()
    }


EXPERIMENT = Experiment(
    summary="what attackers get, against kappa, tiles, known pairs and the core",
    measure=measure,
    report=report,
    drawings={"": Drawing(draw, ALT)},
    presets=("cpu", "tiny"),
    takes=("seeds",),
)
