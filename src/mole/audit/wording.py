"""The figures of an attack in words: what each is called, how it is written, and what it means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mole.audit.intervals import share
from mole.audit.report import AttackReport
from mole.audit.scoring import Score

SHOWN_AT_MOST = 10  # numbers of a list; the rest are in audit.json
MANY = 1000  # from here on a number is written whole, in groups of three digits
LUCK = 4  # images matched by luck: one is to be expected, and more than this in 1 of 250 cases


@dataclass(frozen=True)
class Measured:
    """One figure: its name, its value in words, and what it means."""

    name: str
    value: str
    meaning: str


def matches(rate: float, among: int) -> str:
    """How many images were matched with their originals, beside what luck gives.

    >>> matches(3 / 256, 256), matches(12 / 256, 256), matches(1.0, 256)
    ('3 of 256, no more than luck gives', '12 of 256, where luck gives about 1', '256 of 256')
    """
    count = round(rate * among)
    if count == among:
        return f"{count:,} of {among:,}"
    beside = "no more than luck gives" if count <= LUCK else "where luck gives about 1"
    return f"{count:,} of {among:,}, {beside}"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.0213), duration(1), duration(12.3), duration(131), duration(7260)
    ('less than a second', '1 second', '12 seconds', '2 minutes 11 seconds', '2 hours 1 minute')
    """
    if seconds < 0.95:
        return "less than a second"
    if seconds < 9.95:
        return _many(f"{seconds:.1f}".removesuffix(".0"), "second")
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
    """Any value that an attack reports, or that says what was audited.

    >>> plainly(True), plainly(3072), plainly(0.123456), plainly(None), plainly([1, 2.5]), plainly(-65536.5)
    ('yes', '3,072', '0.1235', 'none', '1, 2.5', '-65,536')
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= MANY else f"{value:.4g}"
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
        "How small the error of the rebuilt pixels is. Above 30 dB is a good copy, above 45 dB the eye "
        "sees no difference, below 15 dB there is next to nothing.",
    ),
    "ssim": (
        "Likeness (SSIM)", _two,
        "How alike the two look: 1 is the same picture, 0 is nothing in common.",
    ),
    "correlation": (
        "Correlation", _two,
        "How closely light and dark follow the original: 1 means exactly, 0 not at all.",
    ),
    "rmse": (
        "Error (RMSE)", plainly,
        "The typical error of a number; 1 is as much as images differ from each other anyway.",
    ),
    "channels": (
        "Channels put in order", share,
        "How much of the secret channel order was found out.",
    ),
    "best_map": (
        "Best single map", _two,
        "Correlation of the clearest feature map with the grey original: nothing is computed, only looked "
        "at.",
    ),
    "components": (
        "Components", _several,
        "How well each coarse property of an image (brightness, colour, layout) was read off: 1 means "
        "exactly, 0 not at all.",
    ),
    "neighbours": (
        "Neighbours found", share,
        "Share of images whose most similar other image was found from the morphed data alone.",
    ),
    "distance_correlation": (
        "Distances kept", _two,
        "How closely distances between morphed images follow those between originals: 1 means exactly.",
    ),
    "linked": (
        "Rows linked", share,
        "Share of the rows that stand elsewhere as well which were found there.",
    ),
    "linkable": ("Rows that stand elsewhere", plainly, "Of how many that share is."),
    "membership": (
        "Told whether delivered", share,
        "How often an image that was delivered is ranked before one that was not; half is chance.",
    ),
}  # fmt: skip


def measured(attack: AttackReport) -> list[Measured]:
    """Every figure that the scorer measured for an attack, in a fixed order, and its time."""
    score = attack.score or Score()
    found = []
    if score.reidentified is not None:
        found.append(_reidentified(score.reidentified, score.among))
    for key, (name, in_words, meaning) in MEASURES.items():
        value = getattr(score, key)
        if value is not None:
            found.append(Measured(name, in_words(value), meaning))
    if attack.seconds is not None:
        found.append(
            Measured("Time", duration(attack.seconds), "How long the attack took on this machine.")
        )
    return found


def _reidentified(rate: float, among: int | None) -> Measured:
    meaning = (
        "Rebuilt images that are more like their own original than like any other. Guessing "
        "blindly gets about one right, however many there are."
    )
    return Measured("Re-identified", matches(rate, among) if among else share(rate), meaning)


def glossary(attacks: Sequence[AttackReport]) -> list[Measured]:
    """Each figure that these attacks have, once, with what it means."""
    every = {figure.name: figure for attack in attacks for figure in measured(attack)}
    return list(every.values())


def in_short(attack: AttackReport) -> str:
    """The measured success in one line: the status, how long, and the two figures that tell most."""
    figures = [figure for figure in measured(attack) if figure.name != "Time"]
    after = "" if attack.seconds is None else f" after {duration(attack.seconds)}"
    told = "; ".join(f"{figure.name[:1].lower()}{figure.name[1:]} {figure.value}" for figure in figures[:2])
    return f"{attack.status.label}{after}{f': {told}' if told else ''}."
