"""From figures to words, for protected rows: within the certificate, better than chance, or broken.

A figure that exceeds its bound, and not by chance, cannot be: whoever sees it looks at software that is
broken, or at noise that was left out. Nothing else on a page is as bad, and it is said first. A figure that
beats chance within its bound is what was agreed to, and no leak.
"""

from collections.abc import Sequence

from mole.attacks.tools.attack import Reader
from mole.audit.bounded import Bounded
from mole.audit.certified import Certified
from mole.audit.levels import Level, Promise, Status
from mole.audit.report import AttackReport, Verdict
from mole.exchange.protection_words import SINGLED_OUT, counted_bits
from mole.foreign_text import shown

IMPLEMENTATION = "so the implementation is broken"
DO_NOT = (
    "Do not hand this delivery over, and destroy it where it lies. Tell whoever maintains this software: "
    "what left is not what the certificate speaks of."
)
FEWER = "If that is too much, deliver with fewer bits."
TOO_WEAK = "The certificate allows that: deliver with fewer bits, and treat this delivery like the images."
NOT_THIS_ONE = "Do not hand this delivery over"
NO_BETTER = "no better than the mean image"
MANY = 100  # candidates: picking most images out of fewer says little


def status_of_figures(figures: Sequence[Bounded], *, is_rebuilt: bool = False) -> Status:
    """What came of an attack with these figures.

    Args:
        figures: what was measured.
        is_rebuilt: whether images were rebuilt, by the limits that hold for any other delivery.
    """
    if not figures:
        return Status.NOT_COMPARED
    if is_rebuilt or any(one.exceeds for one in figures) or _is_picked_out(figures):
        return Status.SUCCEEDED
    return Status.PARTLY if any(one.is_better_than_chance for one in figures) else Status.FAILED


def _is_picked_out(figures: Sequence[Bounded]) -> bool:
    """Whether most images are picked out of the most candidates, which does not hide them."""
    picked = {one.candidates: one.measured.low for one in figures if one.candidates is not None}
    most = max(picked, default=0)
    return most >= MANY and picked[most] >= SINGLED_OUT


def protected_verdicts(
    attacks: Sequence[AttackReport], certificates: Sequence[Certified]
) -> tuple[Verdict, ...]:
    """A verdict on each attacker: one for each question that can be asked of a row.

    Args:
        attacks: what came of them.
        certificates: the bound of each split, and whether its noise is there.
    """
    missing = [f"split {shown(one.split)}: {one.noise}" for one in certificates if not one.is_noisy]
    return tuple(_verdict(reader, attacks, next(iter(missing), None)) for reader in Reader)


def _verdict(reader: Reader, attacks: Sequence[AttackReport], noise: str | None) -> Verdict:
    own = [one for one in attacks if one.attack.attacker == reader]
    figures = [figure for one in own for figure in one.figures]
    if beyond := [one for one in figures if one.exceeds]:
        sentence = f"does better than the certificate allows, {IMPLEMENTATION}: {beyond[-1]}"
        return Verdict(reader, Level.BROKEN, sentence, DO_NOT, promise=Promise.EXCEEDED)
    if noise is not None:
        sentence = f"is held back by nothing: the noise is not there ({noise}), {IMPLEMENTATION}"
        return Verdict(reader, Level.BROKEN, sentence, DO_NOT, promise=Promise.NO_NOISE)
    if not figures:
        why = own[0].words.rstrip(".") if own else "no attack was asked for"
        sentence = f"was not tested: {why[:1].lower()}{why[1:]}"
        return Verdict(reader, Level.UNKNOWN, sentence, "", promise=Promise.UNTESTED)
    best = max((one.status.level for one in own), key=lambda level: level.rank)
    told = _told(reader, figures)
    if best == Level.BROKEN:
        sentence = f"gets what the certificate allows, which is much: {told}"
        return Verdict(reader, Level.BROKEN, sentence, TOO_WEAK, promise=Promise.WEAK)
    if best == Level.LEAKS:
        sentence = f"does better than chance, and no better than the certificate allows: {told}"
        return Verdict(reader, Level.WITHIN, sentence, FEWER, promise=Promise.KEPT)
    return Verdict(
        reader, best, f"gets nothing that could be told from chance: {told}", "", promise=Promise.KEPT
    )


def _told(reader: Reader, figures: Sequence[Bounded]) -> str:
    """The figure that says most: of those that beat chance the last, or else the last of all."""
    if reader == Reader.REBUILDER:
        fidelity = figures[0]
        gained = fidelity.measured.value - fidelity.chance
        by = f"{gained:.1f} dB better than the mean image" if fidelity.is_better_than_chance else NO_BETTER
        others = [str(one) for one in figures[1:] if one.is_better_than_chance]
        return "; ".join([f"what it rebuilds is {by} ({fidelity.value})", *others])
    better = [one for one in figures if one.is_better_than_chance] or list(figures)
    if reader == Reader.ASKER:
        return "; ".join(str(one) for one in [one for one in better if one.unit == "area"] or better)
    return str(better[-1] if reader == Reader.FINDER else max(better, key=lambda one: one.measured.value))


def protected_headline(
    verdicts: Sequence[Verdict],
    certificates: Sequence[Certified],
    so_far: float | None = None,
    *,
    besides: str = "",
) -> str:
    """All verdicts in a sentence or two, the certificate first unless it does not hold.

    Args:
        verdicts: one for each attacker.
        certificates: of each split.
        so_far: bits that no image has exceeded in all that left under the key, if that was counted.
        besides: what leaves with each row, such as its label.
    """
    promises = {verdict.promise for verdict in verdicts}
    if Promise.EXCEEDED in promises:
        return f"{NOT_THIS_ONE}: attacks get more out of it than its certificate allows, {IMPLEMENTATION}."
    if Promise.NO_NOISE in promises:
        return (
            f"{NOT_THIS_ONE}: its rows do not have the noise that its certificate speaks of, "
            f"{IMPLEMENTATION}."
        )
    told = _bits(certificates, so_far, f" besides its {besides}" if besides else "")
    if Promise.WEAK in promises:
        return f"{told}, and that is too much to hide images: treat this delivery like them."
    untested = [verdict.attacker.label for verdict in verdicts if verdict.promise == Promise.UNTESTED]
    if len(untested) == len(verdicts):
        return f"{told}. No attack was tried."
    left = f" Not tested: {', '.join(untested)}." if untested else ""
    return f"{told}, and no attack we tried did better than that allows.{left}"


def _bits(certificates: Sequence[Certified], so_far: float | None, besides: str) -> str:
    """What is told about an image in all of its rows, and in whatever else left under the key."""
    here = max(one.image_bits for one in certificates)
    told = f"This delivery tells {counted_bits(here)} about each image at most{besides}, on average"
    if so_far is not None and so_far > here and counted_bits(so_far) != counted_bits(here):
        told += f", and all that left under its key so far {counted_bits(so_far)}"
    return f"{told}, whoever reads it"
