"""From figures to words: did an attack succeed, and what can each attacker do?

The limits are ours, and stand here in one place. An image counts as rebuilt if what was rebuilt is nearer
to its own original than to any other, and looks like it; as partly seen if attackers do clearly better than
chance. Correlation alone says little: the mean of public images correlates with all others of their kind.
"""

from collections.abc import Sequence
from dataclasses import replace

from mole.attacks.tools.attack import Attacker
from mole.audit.report import AttackReport, Level, Status, Verdict
from mole.audit.scoring import Score
from mole.audit.wording import duration

REBUILT_CORRELATION, REBUILT_SHARE, PICKED_OUT = 0.8, 0.5, 0.9
SEEN_MAP, SEEN_COMPONENT, SEEN_NEIGHBOURS = 0.6, 0.5, 0.5
TIMES_CHANCE, FEWEST_MATCHES = 5, 0.05
AT_LEAST = "can do at least the same: "
NOTHING_TO_DO = "Nothing that was tried calls for a change."


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
    better_than_chance = matched >= max(TIMES_CHANCE / max(score.among or 1, 1), FEWEST_MATCHES)
    signs = (
        better_than_chance and score.among is not None and score.among > 1,
        (score.best_map or 0.0) >= SEEN_MAP,
        max(score.components or (0.0,)) >= SEEN_COMPONENT,
        (score.neighbours or 0.0) >= SEEN_NEIGHBOURS,
    )
    return Status.PARTLY if any(signs) else Status.FAILED


def judged(attack: AttackReport) -> AttackReport:
    """The same report, with the status that its score deserves; without a score it stays as it is."""
    return attack if attack.score is None else replace(attack, status=status_of(attack.score))


def verdicts_of(attacks: Sequence[AttackReport]) -> tuple[Verdict, ...]:
    """A verdict on each attacker, the weakest first; the strong can do what the weak can."""
    verdicts: list[Verdict] = []
    for attacker in Attacker:
        verdict = _verdict(attacker, [one for one in attacks if one.attack.attacker == attacker])
        weaker = verdicts[-1] if verdicts else verdict
        if weaker.level.rank > max(verdict.level.rank, Level.HOLDS.rank):
            same = f"{AT_LEAST}{weaker.sentence.removeprefix(AT_LEAST)}"
            verdict = Verdict(attacker, weaker.level, same, weaker.advice)
        verdicts.append(verdict)
    return tuple(verdicts)


def _verdict(attacker: Attacker, attacks: Sequence[AttackReport]) -> Verdict:
    tried = [one for one in attacks if one.status.level != Level.UNKNOWN and _score(one) != Score()]
    if not tried:
        return Verdict(attacker, Level.UNKNOWN, f"was not tested: {_why(attacks)}", "")
    best = max(tried, key=_success)
    level = _level(best)
    untried = [one for one in attacks if one.status in (Status.NOT_TRIED, Status.GAVE_UP)]
    if level == Level.HOLDS and untried:
        words = untried[0].words.rstrip(".")
        missing = f"{_attacks(tried)} found nothing, but {_attacks(untried)} could not be tried ({words})"
        return Verdict(attacker, Level.UNKNOWN, f"was not fully tested: {missing}", "")
    if level == Level.HOLDS:  # the one with most images to mix up says most
        best = max(tried, key=lambda one: _score(one).among or 0)
        return Verdict(attacker, level, _got_nowhere(best, tried), NOTHING_TO_DO)
    return Verdict(attacker, level, _sentence(best), best.attack.advice)


def _score(attack: AttackReport) -> Score:
    return attack.score or Score()


def _why(attacks: Sequence[AttackReport]) -> str:
    """Why nothing is known of an attacker."""
    if any(one.status == Status.NOT_COMPARED for one in attacks):
        return "attacks were tried, but there was no truth to compare with what they found"
    for status in (Status.NOT_TRIED, Status.GAVE_UP, Status.NOT_APPLICABLE):
        for one in attacks:
            if one.status == status:
                return one.words.rstrip(".")
    return "no attack was asked for"


def _attacks(attacks: Sequence[AttackReport]) -> str:
    return f"{len(attacks)} attack{'' if len(attacks) == 1 else 's'}"


def _level(attack: AttackReport) -> Level:
    """Images that can nearly all be picked out are not hidden, however rough they are."""
    picked_out = (_score(attack).reidentified or 0.0) >= PICKED_OUT
    return Level.BROKEN if attack.status == Status.PARTLY and picked_out else attack.status.level


def _success(attack: AttackReport) -> tuple[int, float, float]:
    score = _score(attack)
    return _level(attack).rank, score.reidentified or 0.0, score.correlation or 0.0


def _sentence(best: AttackReport) -> str:
    """What an attacker can do whose best attack was at least partly successful."""
    matched, seconds = _score(best).reidentified or 0.0, f"in {duration(best.seconds or 0)}"
    if best.status == Status.SUCCEEDED:
        whole = "every image" if matched == 1 else f"{100 * matched:.0f} of 100 images"
        return f"recovers {whole}, {seconds} ({best.attack.title})"
    if matched >= REBUILT_SHARE:
        told = f"{100 * matched:.0f} of 100 images can be told apart"
        return f"rebuilds rough images, {seconds}: {told} ({best.attack.title})"
    return f"cannot rebuild images, but learns something of them, {seconds}: {_learned(best)}"


def _got_nowhere(best: AttackReport, tried: Sequence[AttackReport]) -> str:
    matched, among = _score(best).reidentified or 0.0, _score(best).among
    chance = (
        f" ({100 * matched:.1f} % of {among} were matched; chance is {100 / among:.1f} %)" if among else ""
    )
    return f"cannot recognise images: {_attacks(tried)} got nowhere{chance}"


def _learned(attack: AttackReport) -> str:
    score, title = _score(attack), attack.attack.title
    if (score.best_map or 0.0) >= SEEN_MAP:
        return f"pictures that resemble them (correlation {score.best_map:.2f}; {title})"
    known = sum(value >= SEEN_COMPONENT for value in score.components or ())
    if known:
        return f"{known} coarse features such as brightness and layout ({title})"
    if (score.neighbours or 0.0) >= SEEN_NEIGHBOURS:
        return f"which images are alike, {100 * (score.neighbours or 0.0):.0f} of 100 times ({title})"
    return f"{100 * (score.reidentified or 0.0):.0f} of 100 can be told apart ({title})"
