"""From figures to words: did an attack succeed, and what can each attacker do?

The limits are ours, and stand here in one place. An image counts as rebuilt if the rebuilt one is nearer to
its own original than to any other and looks like it; as partly seen if attackers do clearly better than by
chance. Correlation alone says little: the mean of public images correlates with all others of their kind.
"""

from collections.abc import Sequence

from mole.attacks.tools.attack import ATTACKERS, DEVELOPER, INJECTOR, OUTSIDER, THIEF
from mole.audit.report import (
    BROKEN,
    FAILED,
    GAVE_UP,
    HOLDS,
    LEAKS,
    NOT_APPLICABLE,
    NOT_COMPARED,
    NOT_TRIED,
    PARTLY,
    SUCCEEDED,
    UNKNOWN,
    AttackReport,
    Verdict,
)
from mole.audit.scoring import Score
from mole.audit.wording import duration

WHO = {
    OUTSIDER: "A stranger who gets only the morphed files",
    THIEF: "A stranger who gets the whole delivery and knows the network's architecture",
    DEVELOPER: "A curious developer: the receiver, who has its own first layer as well",
    INJECTOR: "A developer who also knows some of the images",
}
REBUILT_CORRELATION, REBUILT_SHARE, PICKED_OUT = 0.8, 0.5, 0.9
SEEN_MAP, SEEN_COMPONENT, SEEN_NEIGHBOURS = 0.6, 0.5, 0.5
TIMES_CHANCE, FEWEST_MATCHES = 5, 0.05
LEVELS = {SUCCEEDED: BROKEN, PARTLY: LEAKS, FAILED: HOLDS}
AT_LEAST = "can do at least the same: "
RANK = {UNKNOWN: 0, HOLDS: 1, LEAKS: 2, BROKEN: 3}
TRIED = (SUCCEEDED, PARTLY, FAILED)


def status_of(score: Score) -> str:
    """Whether an attack with this score succeeded, partly, or failed.

    >>> status_of(Score(correlation=0.99, reidentified=1.0, among=256))
    'succeeded'
    >>> status_of(Score(correlation=0.3, reidentified=0.2, among=256))
    'partly succeeded'
    >>> status_of(Score(correlation=0.01, reidentified=0.004, among=256))
    'failed'
    """
    matched, correlation = score.reidentified or 0.0, score.correlation or 0.0
    if matched >= REBUILT_SHARE and correlation >= REBUILT_CORRELATION:
        return SUCCEEDED
    better_than_chance = matched >= max(TIMES_CHANCE / max(score.among or 1, 1), FEWEST_MATCHES)
    signs = (
        better_than_chance and score.among is not None and score.among > 1,
        (score.best_map or 0.0) >= SEEN_MAP,
        max(score.components or (0.0,)) >= SEEN_COMPONENT,
        (score.neighbours or 0.0) >= SEEN_NEIGHBOURS,
    )
    return PARTLY if any(signs) else FAILED


def verdicts_of(attacks: Sequence[AttackReport]) -> tuple[Verdict, ...]:
    """A verdict for each attacker, the weakest first; the strong can do what the weak can."""
    verdicts: list[Verdict] = []
    for attacker in ATTACKERS:
        own = [attack for attack in attacks if attack.attacker == attacker]
        verdict = _verdict(attacker, own)
        weaker = verdicts[-1] if verdicts else None
        if (
            weaker is not None
            and weaker.level in (LEAKS, BROKEN)
            and RANK[weaker.level] > RANK[verdict.level]
        ):
            same = f"{AT_LEAST}{weaker.sentence.removeprefix(AT_LEAST)}"
            verdict = Verdict(attacker, WHO[attacker], weaker.level, same, weaker.advice)
        verdicts.append(verdict)
    return tuple(verdicts)


def _verdict(attacker: str, attacks: Sequence[AttackReport]) -> Verdict:
    tried = [attack for attack in attacks if attack.status in TRIED and attack.score]
    if not tried:
        return Verdict(attacker, WHO[attacker], UNKNOWN, f"was not tested: {_why(attacks)}", "")
    best = max(tried, key=_success)
    level = _level(best)
    untried = [attack for attack in attacks if attack.status in (NOT_TRIED, GAVE_UP)]
    if level == HOLDS and untried:
        words = untried[0].words.rstrip(".")
        missing = f"{_attacks(tried)} found nothing, but {_attacks(untried)} could not be tried ({words})"
        return Verdict(attacker, WHO[attacker], UNKNOWN, f"was not fully tested: {missing}", "")
    if level == HOLDS:  # the one with most images to mix up says most
        best = max(tried, key=lambda attack: attack.score.get("among") or 0)
    return Verdict(attacker, WHO[attacker], level, _sentence(best, tried), _advice(best, level))


def _why(attacks: Sequence[AttackReport]) -> str:
    if any(attack.status == NOT_COMPARED for attack in attacks):
        return "attacks were tried, but there was no truth to compare with what they found"
    for status in (NOT_TRIED, GAVE_UP, NOT_APPLICABLE):
        for attack in attacks:
            if attack.status == status:
                return attack.words.rstrip(".")
    return "no attack was asked for"


def _attacks(attacks: Sequence[AttackReport]) -> str:
    return f"{len(attacks)} attack{'' if len(attacks) == 1 else 's'}"


def _level(attack: AttackReport) -> str:
    """Images that can nearly all be picked out are not hidden, however rough they are."""
    matched = float(attack.score.get("reidentified") or 0.0)
    return BROKEN if attack.status == PARTLY and matched >= PICKED_OUT else LEVELS[attack.status]


def _success(attack: AttackReport) -> tuple[int, float, float]:
    matched = float(attack.score.get("reidentified") or 0.0)
    return RANK[_level(attack)], matched, float(attack.score.get("correlation") or 0.0)


def _sentence(best: AttackReport, tried: Sequence[AttackReport]) -> str:
    score, seconds = best.score, f"in {duration(best.seconds or 0)}"
    matched, among = float(score.get("reidentified") or 0.0), score.get("among")
    if best.status == SUCCEEDED:
        whole = "every image" if matched == 1 else f"{100 * matched:.0f} of 100 images"
        return f"recovers {whole}, {seconds} ({best.title})"
    if best.status == PARTLY and matched >= REBUILT_SHARE:
        told = f"{100 * matched:.0f} of 100 images can be told apart"
        return f"rebuilds rough images, {seconds}: {told} ({best.title})"
    if best.status == PARTLY:
        return f"cannot rebuild images, but learns something of them, {seconds}: {_learned(best)}"
    chance = (
        f" ({100 * matched:.1f} % of {among} were matched; chance is {100 / among:.1f} %)" if among else ""
    )
    return f"cannot recognise images: {_attacks(tried)} got nowhere{chance}"


def _learned(attack: AttackReport) -> str:
    score = attack.score
    if float(score.get("best_map") or 0.0) >= SEEN_MAP:
        return f"pictures that resemble them (correlation {score['best_map']:.2f}; {attack.title})"
    if max(score.get("components") or (0.0,)) >= SEEN_COMPONENT:
        known = sum(value >= SEEN_COMPONENT for value in score["components"])
        return f"{known} coarse features such as brightness and layout ({attack.title})"
    if float(score.get("neighbours") or 0.0) >= SEEN_NEIGHBOURS:
        return f"which images are alike, {100 * score['neighbours']:.0f} of 100 times ({attack.title})"
    return f"{100 * float(score.get('reidentified') or 0):.0f} of 100 can be told apart ({attack.title})"


def _advice(best: AttackReport, level: str) -> str:
    return "Nothing that was tried calls for a change." if level == HOLDS else best.advice
