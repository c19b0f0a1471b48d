"""What an audit found: attacks, verdicts and costs, typed until they are written.

    report = mole.audit("delivery", key=key, layer=layer, truth="photos")
    report.verdicts[0].level is Level.NOTHING_FOUND
    page = report.save("audit")

Levels and the like, which machines read as well, are in `mole.audit.levels`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mole.attacks.tools.attack import Attack, Attacker, Somebody
from mole.audit.bounded import Bounded
from mole.audit.certified import Certified
from mole.audit.levels import Level, Promise, Status, Tone
from mole.audit.particulars import Particulars
from mole.audit.scoring import Score


@dataclass(frozen=True)
class Verdict:
    """What one kind of attacker can do, in plain words.

    Attributes:
        attacker: who.
        level: how bad it is.
        sentence: what the attacker can do: 'recovers every image, in 12 seconds'.
        advice: what to do about it.
        fully_tested: whether no attack was left out that might have found more. What is broken needs no
            further attack, and what is unknown was never tested in full.
        untried: the part of the sentence that says what could not be tried, which no page cuts off.
        is_rough: whether what it gets of images are rough copies, which tell them apart and no more.
        promise: what became of the promise of a certificate; None where there is none.
    """

    attacker: Somebody
    level: Level
    sentence: str
    advice: str
    fully_tested: bool = True
    untried: str = ""
    is_rough: bool = False
    promise: Promise | None = None

    def __post_init__(self) -> None:
        if self.level in (Level.UNKNOWN, Level.BROKEN):
            object.__setattr__(self, "fully_tested", self.level == Level.BROKEN)

    @property
    def label(self) -> str:
        """What a page calls it: 'Leaks', 'Leaks, not tested in full', or 'Broken: noise missing'."""
        if self.promise is not None and self.level == Level.BROKEN:
            return self.promise.label
        is_said = self.fully_tested or self.level == Level.UNKNOWN
        return self.level.label if is_said else f"{self.level.label}, not tested in full"

    @property
    def tone(self) -> Tone:
        """That of its level; what some attacks did not find is no comfort while others were not tried."""
        return Level.UNKNOWN.tone if self._is_half_known else self.level.tone

    @property
    def alarm(self) -> int:
        """How early a reader should hear of it."""
        return (Level.UNKNOWN if self._is_half_known else self.level).alarm

    @property
    def lacks_noise(self) -> bool:
        """Whether it follows from noise that is missing, whatever attacks found."""
        return self.promise == Promise.NO_NOISE

    @property
    def _is_half_known(self) -> bool:
        return self.level == Level.NOTHING_FOUND and not self.fully_tested

    @property
    def who(self) -> str:
        """The attacker described: 'A stranger who gets only the morphed files'."""
        return self.attacker.who


@dataclass(frozen=True)
class Picture:
    """A picture: what it shows, which is also its alternative text, and its PNG."""

    caption: str
    png: bytes


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
class AttackReport:
    """One attack: what was tried, and what came of it.

    Attributes:
        attack: which one.
        status: what came of it.
        words: what the attack says it did, or why it was not tried.
        published: what the paper promises against it, or None.
        advice: what to do about it that was not done already; empty where it did not succeed.
        seconds: how long it took, or None.
        score: what the scorer measured, or None where nothing was compared.
        facts: what the attack itself reports.
        pictures: one row per image: original, morphed, what the attacker sees, what it rebuilds.
        figures: of protected rows: what was measured, beside chance and the certificate.
    """

    attack: Attack
    status: Status
    words: str
    published: str | None = None
    advice: str = ""
    seconds: float | None = None
    score: Score | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    pictures: tuple[tuple[Picture, ...], ...] = ()
    figures: tuple[Bounded, ...] = ()

    @property
    def was_run(self) -> bool:
        """Whether it was begun at all."""
        return self.status not in (Status.NOT_APPLICABLE, Status.NOT_TRIED)


@dataclass(frozen=True)
class Cost:
    """One line of the overhead: as published, as counted, as measured here; None for no figure."""

    what: str
    published: str | None
    counted: str | None
    measured: str | None
    remark: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole audit.

    Attributes:
        headline: all of it in one sentence or two.
        delivery: which delivery it is about, for the file; None for a setting.
        date: when it was made, in UTC: '2026-04-01'.
        by, receiver: who made the audit, and who is to receive the delivery; empty where nobody said.
        subject: what was audited, by name and value: rows, kappa, fingerprints, ...
        warnings: what was wrong with the audit itself: a key that does not fit, too few images, ...
        verdicts: one per attacker, the weakest attacker first.
        remarks: what else to know about what was audited: what tiles mean, say.
        attacks: all attacks, tried or not.
        costs: the overhead.
        version: of the tool.
        title: of the page.
        private: whether pictures show the provider's own images, rather than ones that anybody may see.
        certificates: of a protected delivery, the bound of each split; none for others ...
        promises, unsaid: ... and what it says, and what it does not say, in sentences.
    """

    subject: Mapping[str, Any]
    headline: str = ""
    delivery: Particulars | None = None
    date: str = ""
    by: str = ""
    receiver: str = ""
    warnings: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    remarks: tuple[str, ...] = ()
    attacks: tuple[AttackReport, ...] = ()
    costs: tuple[Cost, ...] = ()
    version: str = ""
    title: str = "What this delivery gives away"
    private: bool = True
    certificates: tuple[Certified, ...] = ()
    promises: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()

    def __repr__(self) -> str:
        found = ", ".join(f"{verdict.attacker.value}: {verdict.label.lower()}" for verdict in self.verdicts)
        tried = f"{len(self.attacks)} attacks, {len(self.warnings)} warnings"
        return f"Report({self.title!r}, {found or 'no verdicts'}, {tried})"

    @property
    def in_order(self) -> tuple[Verdict, ...]:
        """The verdicts as people should read them: the receiver first, then the most alarming."""
        return tuple(
            sorted(
                self.verdicts,
                key=lambda verdict: (verdict.attacker != Attacker.DEVELOPER, -verdict.alarm),
            )
        )

    @property
    def was_attacked(self) -> bool:
        """Whether any attack was run."""
        return any(attack.was_run for attack in self.attacks)

    @property
    def is_certificate_alone(self) -> bool:
        """Whether a certificate is all that it has, because what attacks need was not given."""
        return bool(self.certificates and self.remarks) and not self.was_attacked

    @property
    def is_promise_broken(self) -> bool:
        """Whether what left is not what its certificate speaks of: nothing that it says holds then."""
        return any(verdict.promise is not None and verdict.promise.is_broken for verdict in self.verdicts)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        pictures: bool = True,
        appendix: bool = True,
        summary: bool = False,
        replace: bool = False,
    ) -> Path:
        """Write audit.json and audit.html into a new folder that only its owner can read; the page's path.

        Args:
            folder: a new one.
            pictures: whether the page shows images; without them it can go where the images cannot.
            appendix: whether the page ends with the paper's figures.
            summary: whether to write a page to sign as well, summary.html, which has no pictures.
            replace: whether to replace another audit in that folder; anything else is never touched.

        Raises:
            DeliveryError: if the folder exists already, and may not be replaced, or cannot be written.
            ParameterError: if a summary is wanted, and what was audited was not a delivery.
        """
        from mole.audit.write import write_report  # noqa: PLC0415  (it draws: half a second of imports)

        return write_report(
            self, Path(folder), pictures=pictures, appendix=appendix, summary=summary, replace_it=replace
        )
