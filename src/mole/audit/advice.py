"""What to do about an attack, without what was done already.

An attack knows what helps against it, by measure (`attacks/tools/attack.py`). A delivery that took a
measure is not advised to take it again, and one that took all of them is told so.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from mole.attacks.linkage import SAME_IMAGE
from mole.attacks.tools.attack import Attack, Measure
from mole.audit.report import AttackReport
from mole.audit.subject import Subject
from mole.scheme.layouts import TILED

ENOUGH_CHANNELS = 16
ALL_DONE = (
    "Every measure we know against this attack was taken already. Keep the delivery from whoever must not "
    "see the images."
)
NO_CHANGE = "What was tried calls for no change; others may try more."
SEAL_IT = "Who must not see images should get none: seal the delivery for its developer."
NO_TILES = (
    "Tiles repeat one small core: use blocks of rows with kappa = 1 where images are small enough, and "
    "otherwise deliver only to a developer whom you trust not to attack."
)
NEEDS_ONE_BLOCK = (Measure.KAPPA_ONE, Measure.WHITENED)  # no advice for whoever needs tiles
TRY_THE_REST = "Some attacks were not tried: see what they lacked, and audit again before you rely on this."
GIVE_PUBLIC = "Give public images of the same kind to the audit, to test this attacker in full."


def taken_by(subject: Subject, attacks: Sequence[AttackReport] = ()) -> frozenset[Measure]:
    """The measures that a subject and attacks on it show.

    What is not known, such as a core without its key, does not count.

    >>> import numpy as np
    >>> subject = Subject(morphed=np.zeros((9, 1, 4, 4)), kappa=1, core="whitened", sealed=True)
    >>> sorted(measure.name for measure in taken_by(subject))
    ['KAPPA_ONE', 'NO_LABELS', 'SEALED', 'WHITENED']
    """
    channels = 0 if subject.layer is None else subject.layer.channels
    shown = {
        Measure.WHITENED: subject.core == "whitened" and subject.kappa == 1,
        Measure.KAPPA_ONE: subject.kappa == 1,
        Measure.MANY_CHANNELS: channels >= ENOUGH_CHANNELS,
        Measure.NO_DUPLICATES: any(one.facts.get(SAME_IMAGE) == 0 for one in attacks),
        Measure.NO_LABELS: subject.labels is None,
        Measure.SEALED: subject.sealed,
        Measure.TILES: subject.layout in TILED,
    }
    return frozenset(measure for measure, is_taken in shown.items() if is_taken)


def advice_on(attacks: Sequence[Attack], taken: AbstractSet[Measure]) -> str:
    """What to do about attacks, each measure once, for whoever took these measures already."""
    further: dict[Measure, str] = {}
    for attack in attacks:
        for measure, words in attack.helps.items():
            further.setdefault(measure, words)
    if Measure.TILES in taken and further.keys() & {*NEEDS_ONE_BLOCK}:
        further = {one: words for one, words in further.items() if one not in NEEDS_ONE_BLOCK}
        further |= {Measure.ROWS: NO_TILES, Measure.SEALED: SEAL_IT}
    missing = [words for measure, words in further.items() if measure not in taken]
    always = dict.fromkeys(attack.advice for attack in attacks)
    return " ".join(filter(None, (*always, *missing))) or ALL_DONE


def advice_without_findings(taken: AbstractSet[Measure], *, untried: bool, public: bool) -> str:
    """What to do where no attack found anything: nothing, or to try the rest.

    >>> advice_without_findings({Measure.SEALED}, untried=False, public=True)
    'What was tried calls for no change; others may try more.'

    Args:
        taken: the measures that were taken.
        untried: whether some attack could not be tried.
        public: whether there were public images.
    """
    wanted = "" if not untried else TRY_THE_REST if public else f"{TRY_THE_REST} {GIVE_PUBLIC}"
    sealing = "" if Measure.SEALED in taken else SEAL_IT
    return " ".join(filter(None, (wanted or NO_CHANGE, sealing)))
