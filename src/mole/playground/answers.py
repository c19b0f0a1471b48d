"""What the page shows, as JSON: pictures with their words, scores, costs; every number is the library's."""

import base64
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mole.attacks.tools.views import NotApplicableError
from mole.audit.pictures import picture, stretched
from mole.audit.scoring import Score
from mole.limits import MAX_UPLOAD_BYTES
from mole.playground.choices import BITS, LAYOUT_CHOICES, sizes
from mole.playground.morphing_trial import TRIED, MorphingTrial
from mole.playground.noise_trial import CANDIDATES, FEATURES, NoiseTrial
from mole.playground.stock import LOOKS, SIDE, Picture, Stock
from mole.quantities import counted, size_text
from mole.scheme.morphing import CORE_KINDS
from mole.scheme.shapes import Array, element_count

Answer = dict[str, Any]
GOOD_COPY, MORE = 30.0, 1.0  # dB of a good copy; dB beyond the mean picture from which something shows
GAP = 1  # pixels between feature maps


def welcome(stock: Stock) -> Answer:
    """What can be chosen."""
    return {
        "pictures": [thumbnail(name, one) for name, one in stock.samples.items()],
        "sizes": {kind: sizes(shape) for kind, (shape, _) in LOOKS.items()},
        "elements": {kind: element_count(shape) for kind, (shape, _) in LOOKS.items()},
        "channels": {kind: shape[0] for kind, (shape, _) in LOOKS.items()},
        "layouts": LAYOUT_CHOICES,
        "cores": CORE_KINDS,
        "bits": BITS,
        "attackers": {name: attack.attacker.who for name, attack in TRIED.items()},
        "side": SIDE,
        "most_bytes": MAX_UPLOAD_BYTES,
    }


def thumbnail(name: str, one: Picture) -> Answer:
    """A picture to choose."""
    return {"id": name, "name": one.name, "kind": one.kind, **_shown(one.name, _pixels(one))}


def look(trial: MorphingTrial) -> Answer:
    """The picture, morphed, and as feature maps; and what that costs."""
    seen = trial.feature_maps()
    maps = seen.finding.maps
    assert maps is not None and seen.score.best_map is not None  # noqa: S101, PT018  (it always has them)
    name = trial.picture.name
    return {
        "plain": _shown(f"{name}: the original", trial.truth.pixels(trial.picture.plain)[0]),
        "morphed": _shown(f"{name}, morphed: noise to the eye", stretched(trial.morphed[0])),
        "maps": _shown(f"{maps.shape[1]} feature maps of {name.lower()}", sheet(maps[0])),
        "best_map": seen.score.best_map,
        "mean": _figures(trial.unseen()),
        "costs": costs(trial),
    }


def costs(trial: MorphingTrial) -> list[Answer]:
    """Sizes and multiplications, as counted: of the provider, of the developer, and what is sent."""
    figures, made = trial.figures(), trial.made
    layer, key = made.kind.layer, made.key
    values, core = element_count(layer.input_shape), key.morphing.layout.block
    plain_macs = math.prod(layer.output_shape) * math.prod(layer.weight.shape[1:])
    added = round(figures["developer macs"].counted or 0)
    pairs = figures["pairs"].counted or 0
    rows = (
        ("Secret core", f"{core:,} x {core:,}", f"used {_times(key.kappa)} in each picture"),
        ("Provider, for a picture", figures["provider macs"].words("counted"), "multiplications"),
        (
            "Developer, first layer",
            f"{plain_macs + added:,}",
            f"multiplications for a picture; {plain_macs:,} without morphing",
        ),
        (
            "Augmented layer",
            size_text(made.augmented.nbytes),
            f"sent once; the plain layer has {size_text(4 * layer.weight.size)}",
        ),
        (
            "Morphed picture",
            size_text(4 * values),
            f"as 32-bit numbers; {size_text(values)} in 8 bits, as the plain one",
        ),
        (
            "Known pictures that give the core",
            f"{pairs:,.0f}",
            "without the augmented layer; with it, one is enough",
        ),
    )
    return [{"what": what, "value": value, "remark": remark} for what, value, remark in rows]


def attacked(trial: MorphingTrial, attacker: str) -> Answer:
    """What one attacker rebuilds, how good that is, and how long it took."""
    start = time.perf_counter()
    try:
        rebuilt = trial.attacked(attacker)
    except NotApplicableError as reason:
        return {"words": reason.sentence, "level": "none", "verdict": "not tried"}
    name, result = trial.picture.name.lower(), rebuilt.score
    level, verdict = judged(result, trial.unseen())
    return {
        **_shown(f"What this attacker rebuilds of {name}: {verdict}", rebuilt.pixels),
        **_figures(result),
        "level": level,
        "verdict": verdict,
        "words": rebuilt.finding.words,
        "seconds": round(time.perf_counter() - start, 2),
    }


def protected(name: str, trial: NoiseTrial) -> Answer:
    """A protected row, its certificate, and what the decoder and the finder make of it."""
    side = math.isqrt(FEATURES)
    level, verdict = judged(trial.score, trial.mean_score)
    named = name.lower()
    return {
        "row": _shown(
            f"{FEATURES} noisy numbers: all that leaves", stretched(trial.row.reshape(side, side))
        ),
        "rebuilt": {
            **_shown(f"What a decoder rebuilds of {named}: {verdict}", trial.rebuilt),
            **_figures(trial.score),
            "level": level,
            "verdict": verdict,
        },
        "mean": _figures(trial.mean_score),
        "picked": {
            **_shown(f"The picture that was picked: {'the right' if trial.is_right else 'a wrong'} one",
                     trial.picked),
            "right": trial.is_right,
            "share": trial.share,
            "most": trial.most_share,
            "candidates": CANDIDATES,
        },
        "bits": trial.certificate.bits,
        "sigma": trial.certificate.sigma,
        "features": FEATURES,
        "bytes": size_text(4 * FEATURES),
    }  # fmt: skip


def judged(result: Score, unseen: Score) -> tuple[str, str]:
    """How far an attacker came with one picture: a level, and words for it.

    It counts only what is better than the mean of other pictures, which anybody can draw without looking.

    >>> judged(Score(psnr=45.0), Score(psnr=11.0)), judged(Score(psnr=11.5), Score(psnr=11.0))
    (('bad', 'a good copy'), ('good', 'next to nothing'))
    """
    reached, beforehand = result.psnr or 0.0, unseen.psnr or 0.0
    if reached >= GOOD_COPY:
        return "bad", "a good copy"
    return ("warn", "a rough idea") if reached >= beforehand + MORE else ("good", "next to nothing")


def timed(work: Callable[[], Answer]) -> Answer:
    """An answer, and the seconds that it took."""
    start = time.perf_counter()
    return {**work(), "took": round(time.perf_counter() - start, 2)}


def sheet(maps: Array) -> Array:
    """Feature maps, (how many, height, width), beside and below each other, with a line between them.

    >>> sheet(np.zeros((16, 24, 24))).shape
    (99, 99)
    """
    columns = math.isqrt(len(maps) - 1) + 1
    rows = -(-len(maps) // columns)
    height, width = maps.shape[1:]
    paper = np.full((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP), 1.0)
    for place, one in enumerate(maps):
        row, column = divmod(place, columns)
        top, left = row * (height + GAP), column * (width + GAP)
        paper[top : top + height, left : left + width] = stretched(one)
    return paper


def _shown(words: str, pixels: Array) -> Answer:
    """A picture as an address that holds the picture itself, and its words for those who cannot see it."""
    drawn = picture(words, pixels)
    return {"src": "data:image/png;base64," + base64.b64encode(drawn.png).decode(), "alt": drawn.caption}


def _pixels(one: Picture) -> Array:
    pixels: Array = LOOKS[one.kind][1].undo(one.plain)[0]
    return pixels


def _figures(result: Score) -> Answer:
    return {"ssim": result.ssim, "psnr": result.psnr, "correlation": result.correlation}


def _times(count: int) -> str:
    return "once" if count == 1 else counted(count, "time")
