"""What an audit found, ready to be written: as JSON for machines, as a page for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HOLDS, LEAKS, BROKEN, UNKNOWN = "holds", "leaks", "broken", "not tested"
SUCCEEDED, PARTLY, FAILED = "succeeded", "partly succeeded", "failed"
NOT_APPLICABLE, NOT_TRIED, NOT_COMPARED = "not applicable", "not tried", "not compared"
GAVE_UP = "gave up"


@dataclass(frozen=True)
class Verdict:
    """What one kind of attacker can do, in plain words.

    Attributes:
        attacker: one of `mole.attacks.tools.attack.ATTACKERS`.
        who: that attacker described: 'A stranger who gets only the morphed files'.
        level: HOLDS, LEAKS, BROKEN or UNKNOWN.
        sentence: what it can do: 'recovers every image, in 12 seconds'.
        advice: what to do about it.
    """

    attacker: str
    who: str
    level: str
    sentence: str
    advice: str


@dataclass(frozen=True)
class Picture:
    """A picture: what it shows, which is also its alternative text, and its PNG."""

    caption: str
    png: bytes


@dataclass(frozen=True)
class AttackReport:
    """One attack: what was tried, what came of it.

    Attributes:
        name, title, attacker, source, advice: as in `mole.attacks.tools.attack.Attack`.
        status: SUCCEEDED, PARTLY, FAILED, NOT_APPLICABLE, NOT_TRIED (no time, or
            something was not given), NOT_COMPARED (no truth) or GAVE_UP.
        words: what the attack says it did, or why it was not tried.
        published: what the paper promises against it, or None.
        seconds: how long it took, or None.
        score: what the scorer measured, None left out.
        facts: what the attack itself reports.
        pictures: a row an image: original, morphed, what the attacker sees, what it rebuilds.
    """

    name: str
    title: str
    attacker: str
    source: str
    advice: str
    status: str
    words: str
    published: str | None
    seconds: float | None
    score: Mapping[str, Any]
    facts: Mapping[str, Any]
    pictures: tuple[tuple[Picture, ...], ...] = ()


@dataclass(frozen=True)
class Plot:
    """A figure as SVG, with its numbers as a table for those who cannot see it.

    Attributes:
        title, words: what it is, and what to see in it.
        svg: the drawing.
        columns, rows: the same as a table.
        pictures: pictures that belong to it, in order.
    """

    title: str
    words: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Cost:
    """One line of the overhead: as published, as counted, as measured here; None for no figure."""

    what: str
    published: str | None
    counted: str | None
    measured: str | None
    remark: str


@dataclass(frozen=True)
class Report:
    """A whole audit.

    Attributes:
        subject: what was audited, name and value: rows, kappa, fingerprints, ...
        warnings: what was wrong with the audit itself: a key that does not fit, too few images, ...
        verdicts: one an attacker, the weakest attacker first.
        attacks: all attacks, tried or not.
        plots: the paper's figures.
        costs: the overhead.
        version: of the tool.
        title: of the page.
        private: whether pictures show the provider's own images, rather than ones that everybody may see.
    """

    subject: Mapping[str, Any]
    warnings: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    attacks: tuple[AttackReport, ...]
    plots: tuple[Plot, ...]
    costs: tuple[Cost, ...]
    version: str
    title: str = "What this delivery gives away"
    private: bool = True
