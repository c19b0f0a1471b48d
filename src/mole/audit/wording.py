"""The figures of an attack in words: what each is called, how it is written, and what it means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mole.audit.report import AttackReport

SHOWN_AT_MOST = 10  # numbers of a list: the rest is in audit.json


@dataclass(frozen=True)
class Measured:
    """One figure: its name, its value in words, and what it means."""

    name: str
    value: str
    meaning: str


def share(value: float) -> str:
    r"""A share in per cent, never rounded up to all or down to nothing; its parts stay on one line.

    >>> [share(value).replace("\xa0", " ") for value in (1, 0.99999, 0.5, 0.015625, 0.00001, 0)]
    ['100 %', '99.99 %', '50 %', '1.56 %', '0.01 %', '0 %']
    """
    percent = 100 * value
    if 99 < percent < 100:
        return f"{min(percent, 99.99):.2f}\u00a0%"
    return f"{max(percent, 0.01) if percent > 0 else percent:.3g}\u00a0%"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.0213), duration(1), duration(12.3), duration(131), duration(7260)
    ('0.02 seconds', '1 second', '12 seconds', '2 minutes 11 seconds', '2 hours 1 minute')
    """
    if seconds < 9.95:
        shown = f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2f}"
        return _many(shown.rstrip("0").rstrip(".") or "0", "second")
    units = ((3600, "hour"), (60, "minute"), (1, "second"))
    left, words = round(seconds), []
    for size, unit in units:
        count, left = divmod(left, size)
        if count:
            words.append(_many(str(count), unit))
    return " ".join(words[:2])


def _many(count: str, unit: str) -> str:
    return f"{count} {unit}" if count == "1" else f"{count} {unit}s"


def plainly(value: Any) -> str:
    """Any value that an attack or a runner reports.

    >>> plainly(True), plainly(3072), plainly(0.123456), plainly(None), plainly([1, 2.5])
    ('yes', '3,072', '0.1235', 'none', '1, 2.5')
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {plainly(item)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        shown = ", ".join(plainly(item) for item in value[:SHOWN_AT_MOST])
        return f"{shown}, ..." if len(value) > SHOWN_AT_MOST else shown
    return str(value)


def _two(value: float) -> str:
    return f"{value:.2f}"


def _several(values: Sequence[float]) -> str:
    return plainly([round(value, 2) for value in values])


# In the order in which a page shows them.
MEASURES: Mapping[str, tuple[str, Callable[[Any], str], str]] = {
    "psnr": (
        "Fidelity (PSNR)", lambda value: f"{value:.1f} dB",
        "How small the error of the rebuilt pixels is. Above 30 dB is a good copy, above 45 dB eyes see no "
        "difference, below 15 dB there is next to nothing.",
    ),
    "ssim": (
        "Likeness (SSIM)", _two,
        "How alike the two look: 1 is the same picture, 0 is nothing in common.",
    ),
    "correlation": (
        "Correlation", _two,
        "How closely light and dark follow the original: 1 exactly, 0 not at all.",
    ),
    "rmse": (
        "Error (RMSE)", plainly,
        "The typical error of a number, where 1 is as much as images differ from each other anyway.",
    ),
    "channels": (
        "Channels put in order", share,
        "Share of the secret channel order that was found out.",
    ),
    "best_map": (
        "Best single map", _two,
        "Correlation of the clearest feature map with the grey original: nothing is computed, only looked "
        "at.",
    ),
    "components": (
        "Components", _several,
        "How well each coarse property of an image (brightness, colour, layout) was read off: 1 exactly, "
        "0 not at all.",
    ),
    "neighbours": (
        "Neighbours found", share,
        "Share of images whose most similar other image was told from the morphed data alone.",
    ),
    "distance_correlation": (
        "Distances kept", _two,
        "How closely distances between morphed images follow those between originals: 1 exactly.",
    ),
}  # fmt: skip


def measured(attack: AttackReport) -> list[Measured]:
    """Every figure that the scorer measured for an attack, in a fixed order; others after the known."""
    score = dict(attack.score)
    found = []
    if score.get("reidentified") is not None:
        found.append(_reidentified(score.pop("reidentified"), score.pop("among", None)))
    for key, (name, shown, meaning) in MEASURES.items():
        value = score.pop(key, None)
        if value is not None:
            found.append(Measured(name, shown(value), meaning))
    found += [Measured(key, plainly(value), "") for key, value in score.items() if value is not None]
    if attack.seconds is not None:
        found.append(
            Measured("Time", duration(attack.seconds), "How long the attack took on this machine.")
        )
    return found


def _reidentified(rate: float, among: int | None) -> Measured:
    meaning = "Rebuilt images that are more like their own original than like any other."
    if not among:
        return Measured("Re-identified", share(rate), meaning)
    value = f"{round(rate * among):,} of {among:,} ({share(rate)})"
    return Measured("Re-identified", value, f"{meaning} Blind guessing gives 1 in {among:,}.")


def in_short(attack: AttackReport) -> str:
    """The measured success in one line: the status, how long, and the two figures that tell most."""
    figures = [figure for figure in measured(attack) if figure.name != "Time"]
    after = "" if attack.seconds is None else f" after {duration(attack.seconds)}"
    told = "; ".join(f"{figure.name.lower()} {figure.value}" for figure in figures[:2])
    start = f"{attack.status[:1].upper()}{attack.status[1:]}{after}"
    return (
        f"{start}: {told.replace('(psnr)', '(PSNR)').replace('(ssim)', '(SSIM)')}." if told else f"{start}."
    )
