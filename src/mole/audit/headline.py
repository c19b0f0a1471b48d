"""An audit in a sentence: what its verdicts come to, the receiver first.

A receiver who can get the images back is the worst that can be said, and it is said first; what was not
tested in full is no comfort, whatever else was found. Where no attack found anything, the sentence promises
nothing.
"""

from collections.abc import Mapping, Sequence

from mole.attacks.tools.attack import Attacker, Somebody
from mole.audit.report import Level, Verdict

SEALED = (
    "This delivery is sealed: strangers were not given these files in the clear. The attacks of strangers "
    "on this page assume that they were."
)
NOT_SEALED = "This delivery is not sealed: what this page says of strangers holds for whoever gets it."


def headline(verdicts: Sequence[Verdict], what: str = "delivery", *, sealed: bool = False) -> str:
    """All verdicts in a sentence or two.

    >>> broken = Verdict(Attacker.DEVELOPER, Level.BROKEN, "recovers every image", "")
    >>> headline([broken])
    'Treat this delivery like the images: its receiver can get them back.'

    Args:
        verdicts: one for each attacker who was thought of.
        what: was audited: a 'delivery' or a 'setting'.
        sealed: whether strangers were given nothing in the clear.
    """
    levels = {verdict.attacker: verdict.level for verdict in verdicts}
    like = f"Treat this {what} like the images"
    receiver, strangers = levels.get(Attacker.DEVELOPER, Level.UNKNOWN), _strangers(levels, sealed)
    if receiver == Level.BROKEN:
        return f"{like}: its receiver can get them back{strangers}."
    if levels.get(Attacker.INJECTOR) == Level.BROKEN:
        return f"{like}: a receiver who knows some of them can get the others back{strangers}."
    if receiver == Level.UNKNOWN:
        return f"{like} until more is known: what its receiver can do was not tested."
    tested = {verdict.attacker for verdict in verdicts if verdict.fully_tested}
    if Attacker.DEVELOPER not in tested:
        return (
            f"{like} until more is known: its receiver learns something of them, and what else it can do "
            "was not tested in full."
        )
    untested = [one.label for one in Attacker if one not in tested]
    open_ = f" Not tested in full: {', '.join(untested)}." if untested else ""
    if receiver == Level.LEAKS:
        return (
            f"This {what} gives something of the images away: its receiver learns it.{open_} No attack we "
            "tried got the images themselves, which is no promise."
        )
    return f"No attack we tried got at the images, which is no promise: others may try more.{open_}"


def _strangers(levels: Mapping[Somebody, Level], sealed: bool) -> str:
    """Which strangers can do so, too, or could if they had it in the clear."""
    can, gets = ("could", "got") if sealed else ("can", "gets")
    clear = " in the clear" if sealed else ""
    if levels.get(Attacker.OUTSIDER) == Level.BROKEN:
        return f", and so {can} a stranger who {gets} only the morphed files{clear}"
    if levels.get(Attacker.THIEF) == Level.BROKEN:
        return f", and so {can} a stranger who {gets} the whole of it{clear}"
    return ""
