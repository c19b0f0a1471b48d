"""From figures to words: did an attack succeed, and what can each attacker do?

The limits are ours, and stand here in one place. An image counts as rebuilt if what was rebuilt is nearer
to its own original than to any other, and looks like it; as partly seen if attackers do clearly better than
chance. Correlation alone says little: the mean of public images correlates with all others of their kind.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from mole.attacks.tools.attack import Attacker, Measure
from mole.audit.advice import advice_on, advice_without_findings
from mole.audit.levels import Level, Status
from mole.audit.report import AttackReport, Verdict
from mole.audit.scoring import Score
from mole.audit.subject import FEWEST_IMAGES, Subject
from mole.audit.wording import duration, matches
from mole.quantities import counted
from mole.scheme.shapes import block_size

REBUILT_CORRELATION, REBUILT_SHARE, PICKED_OUT = 0.8, 0.5, 0.9
GOOD_COPY = 30.0  # dB: what is rebuilt less well is not called recovered
SEEN_MAP, SEEN_COMPONENT, SEEN_NEIGHBOURS = 0.6, 0.5, 0.5
SEEN_LINKS, SEEN_MEMBERSHIP = 0.5, 0.75
LUCKY = 8  # matches: luck gives one, and as many as this once in 100,000 attacks
AT_LEAST = "can do at least the same: "
NO_PUBLIC = "give public images of the same kind to try them"


def status_of(score: Score) -> Status:
    """Whether an attack with this score succeeded, partly succeeded, or failed.

    >>> status_of(Score(correlation=0.99, reidentified=1.0, among=256)).value
    'succeeded'
    >>> status_of(Score(correlation=0.3, reidentified=0.2, among=256)).value
    'partly succeeded'
    >>> status_of(Score(correlation=0.01, reidentified=0.004, among=256)).value
    'failed'
    """
    matched, correlation = score.reidentified or 0.0, score.correlation or 0.0
    if matched >= REBUILT_SHARE and correlation >= REBUILT_CORRELATION:
        return Status.SUCCEEDED
    signs = (
        is_better_than_luck(score),
        (score.best_map or 0.0) >= SEEN_MAP,
        max(score.components or (0.0,)) >= SEEN_COMPONENT,
        (score.neighbours or 0.0) >= SEEN_NEIGHBOURS,
        (score.linked or 0.0) >= SEEN_LINKS,
        (score.membership or 0.0) >= SEEN_MEMBERSHIP,
    )
    return Status.PARTLY if any(signs) else Status.FAILED


def is_better_than_luck(score: Score) -> bool:
    """Whether clearly more images were matched with their originals than luck would match."""
    if score.among is None or score.among <= 1:
        return False
    return (score.reidentified or 0.0) * score.among >= LUCKY


def judged(attack: AttackReport) -> AttackReport:
    """The same report, with the status that its score deserves; without a score it stays as it is."""
    return attack if attack.score is None else replace(attack, status=status_of(attack.score))


@dataclass(frozen=True)
class Tried:
    """What attacks were given to work with: a verdict says so.

    >>> str(Tried(images=30_000, side=256, labels=True, public=4_096))
    '30,000 images with labels against a core of side q = 256, and 4,096 public images'
    >>> print(Tried(images=300, side=64, labels=False, public=525, aside=75))
    300 images without labels against a core of side q = 64, and 525 public images (75 more set aside as \
images that were not delivered)

    Attributes:
        images: morphed ones.
        side: of the core: the paper's q.
        labels: whether the classes of delivered and of public images were known.
        public: public images; 0 where none were given.
        aside: further public images, kept to ask whether they were delivered.
    """

    images: int
    side: int
    labels: bool
    public: int
    aside: int = 0

    @classmethod
    def of(cls, subject: Subject) -> "Tried":
        """What a subject gives."""
        members = None if subject.truth is None else subject.truth.members
        return cls(
            images=len(subject.morphed),
            side=block_size(subject.input_shape, subject.kappa),
            labels=subject.labels is not None and subject.public_labels is not None,
            public=0 if subject.public is None else len(subject.public),
            aside=0 if members is None else int((~members).sum()),
        )

    def __str__(self) -> str:
        labels = "with" if self.labels else "without"
        public = f"{self.public:,} public images" if self.public else "no public images"
        aside = f" ({self.aside:,} more set aside as images that were not delivered)" if self.aside else ""
        images = f"{self.images:,} images {labels} labels"
        return f"{images} against a core of side q = {self.side:,}, and {public}{aside}"


def verdicts_of(
    attacks: Sequence[AttackReport], tried: Tried, taken: AbstractSet[Measure] = frozenset()
) -> tuple[Verdict, ...]:
    """A verdict on each attacker, the weakest first; the strong can do what the weak can.

    Args:
        attacks: what came of them, judged.
        tried: what they were given.
        taken: measures that the provider took already.
    """
    verdicts: list[Verdict] = []
    weaker: Verdict | None = None  # whose own attacks came furthest so far
    for attacker in Attacker:
        own = [one for one in attacks if one.attack.attacker == attacker]
        verdict = _verdict(attacker, own, tried, taken)
        if weaker is not None and weaker.level.rank > max(verdict.level.rank, Level.NOTHING_FOUND.rank):
            verdict = _at_least(verdict, weaker)
        else:
            weaker = verdict
        verdicts.append(verdict)
    return tuple(verdicts)


def _at_least(own: Verdict, weaker: Verdict) -> Verdict:
    """The verdict on an attacker whose own attacks came less far; what was not tested stays said."""
    more, untried = "", weaker.untried
    if not own.fully_tested and weaker.level != Level.BROKEN:
        untested = own.level == Level.UNKNOWN
        more = f"what more it can do {own.sentence}" if untested else f"beyond that, {own.sentence}"
        untried = _joined(weaker.untried, more if untested else own.untried)
    return Verdict(
        own.attacker, weaker.level, _joined(f"{AT_LEAST}{weaker.sentence}", more), weaker.advice,
        fully_tested=own.fully_tested and weaker.fully_tested, untried=untried, is_rough=weaker.is_rough,
    )  # fmt: skip


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _verdict(
    attacker: Attacker, attacks: Sequence[AttackReport], given: Tried, taken: AbstractSet[Measure]
) -> Verdict:
    done = [one for one in attacks if one.status.level != Level.UNKNOWN]
    tried = [one for one in done if _score(one) != Score()]  # others claimed nothing to be measured
    untried = [one for one in attacks if one.status in (Status.NOT_TRIED, Status.GAVE_UP)]
    missing = _missing(untried, given)
    if not tried:
        return Verdict(attacker, Level.UNKNOWN, f"was not tested: {_why(attacks, given)}", "")
    best = max(tried, key=success)
    level = _level(best)
    if level == Level.NOTHING_FOUND:  # what came furthest beyond luck, of those with most images to mix up
        best = max(tried, key=_beyond_luck)
        advice = advice_without_findings(taken, untried=bool(untried), public=given.public > 0)
        sentence = _joined(_got_nowhere(best, done, given), missing)
        return Verdict(attacker, level, sentence, advice, fully_tested=not untried, untried=missing)
    if level == Level.BROKEN or (_score(best).reidentified or 0.0) >= REBUILT_SHARE:
        more = "" if level == Level.BROKEN else missing
        advice = advice_on([best.attack], taken)
        sentence = _joined(_sentence(best), more)
        return Verdict(
            attacker, level, sentence, advice,
            fully_tested=not untried, untried=more, is_rough=_is_rough(best),
        )  # fmt: skip
    leaking = sorted((one for one in tried if _level(one) == level), key=success, reverse=True)
    advice = advice_on([one.attack for one in leaking], taken)
    sentence = _joined(_leaks(leaking), missing)
    return Verdict(attacker, level, sentence, advice, fully_tested=not untried, untried=missing)


def _beyond_luck(attack: AttackReport) -> tuple[int, int]:
    """How many images were matched, of how many."""
    score = _score(attack)
    among = score.among or 0
    return round((score.reidentified or 0.0) * among), among


def _missing(untried: Sequence[AttackReport], given: Tried) -> str:
    """What could not be tried, and what to give so that it can."""
    if not untried:
        return ""
    words = untried[0].words.rstrip(".")
    how = "" if given.public else f"; {NO_PUBLIC}"
    return f"{_attacks(untried)} could not be tried ({words}){how}"


def _score(attack: AttackReport) -> Score:
    return attack.score or Score()


def _why(attacks: Sequence[AttackReport], given: Tried) -> str:
    """Why nothing is known of an attacker."""
    if any(one.status == Status.NOT_COMPARED for one in attacks):
        if given.images < FEWEST_IMAGES:
            few = counted(given.images, "image")
            return f"what attacks found in {few} tells nothing: audit a delivery of {FEWEST_IMAGES} or more"
        return "attacks ran, but there was no truth to compare with what they found"
    for status in (Status.NOT_TRIED, Status.GAVE_UP, Status.NOT_APPLICABLE):
        for one in attacks:
            if one.status == status:
                return one.words.rstrip(".")
    return "attacks were tried, and none measured anything" if attacks else "no attack was asked for"


def _attacks(attacks: Sequence[AttackReport]) -> str:
    return f"{len(attacks)} attack{'' if len(attacks) == 1 else 's'}"


def _level(attack: AttackReport) -> Level:
    """Images that can nearly all be picked out are not hidden, however rough they are."""
    picked_out = (_score(attack).reidentified or 0.0) >= PICKED_OUT
    return Level.BROKEN if attack.status == Status.PARTLY and picked_out else attack.status.level


def success(attack: AttackReport) -> tuple[int, float, float]:
    """How far an attack came, to compare it with others: the more, the larger."""
    score = _score(attack)
    return _level(attack).rank, round(score.reidentified or 0.0, 2), round(score.correlation or 0.0, 2)


def _sentence(best: AttackReport) -> str:
    """What an attacker can do whose best attack rebuilt images: as many as were compared, no more."""
    score, how = _score(best), f"in {duration(best.seconds or 0)} ({best.attack.title})"
    among = score.among or 0
    count, fidelity = round((score.reidentified or 0.0) * among), score.psnr
    counted = f"{count:,} of {among:,}"
    if not _is_rough(best):
        whole = f"every image, {counted}" if count == among else f"{counted} images"
        return f"recovers {whole}, {how}"
    told = "" if fidelity is None else f" ({fidelity:.0f} dB)"
    return f"picks out {counted} images, from rough copies{told}, {how}"


def _is_rough(best: AttackReport) -> bool:
    """Whether what was rebuilt tells images apart, and is not the images."""
    fidelity = _score(best).psnr
    return best.status != Status.SUCCEEDED or (fidelity is not None and fidelity < GOOD_COPY)


def _got_nowhere(best: AttackReport, tried: Sequence[AttackReport], given: Tried) -> str:
    matched, among = _score(best).reidentified or 0.0, _score(best).among
    told = f" (matched with their originals: {matches(matched, among)})" if among else ""
    return f"no attack we tried recognised images: {_attacks(tried)}, on {given}{told}"


def _leaks(leaking: Sequence[AttackReport]) -> str:
    """Everything that attacks learned, each thing once and from the attack that learned most of it."""
    told: dict[str, str] = {}
    for one in leaking:
        for what, words in _learned(_score(one)):
            told.setdefault(what, f"{words} ({one.attack.title})")
    longest = max(one.seconds or 0 for one in leaking)
    return f"learns something of the images, in {duration(longest)}: {'; '.join(told.values())}"


def _learned(score: Score) -> Iterator[tuple[str, str]]:
    """What a score shows short of images, by a name for each kind of it."""
    if (score.best_map or 0.0) >= SEEN_MAP:
        yield "map", f"pictures that resemble them, with a correlation of {score.best_map:.2f}"
    known = sum(value >= SEEN_COMPONENT for value in score.components or ())
    if known:
        features = "1 coarse feature" if known == 1 else f"{known} coarse features"
        yield "components", f"{features} such as brightness and layout"
    if (score.neighbours or 0.0) >= SEEN_NEIGHBOURS:
        yield (
            "neighbours",
            f"which images are alike, right {100 * (score.neighbours or 0.0):.0f} of 100 times",
        )
    if (score.linked or 0.0) >= SEEN_LINKS:
        count = score.linkable or 0
        yield (
            "linked",
            f"which rows stand elsewhere as well, {round((score.linked or 0) * count):,} of {count:,}",
        )
    if (score.membership or 0.0) >= SEEN_MEMBERSHIP:
        right = f"{100 * (score.membership or 0.0):.0f} of 100 times"
        yield "membership", f"whether an image is among them: right {right}, where luck gives 50"
    if is_better_than_luck(score):
        yield "matched", f"which image is which, {matches(score.reidentified or 0.0, score.among or 1)}"
