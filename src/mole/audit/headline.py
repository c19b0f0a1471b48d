"""An audit in a sentence: what its verdicts come to, the receiver first.

A receiver who can get the images back is the worst that can be said, and it is said first; what was not
tested in full is no comfort, whatever else was found. Where no attack found anything, the sentence promises
nothing.
"""

from collections.abc import Mapping, Sequence

from mole.attacks.tools.attack import Attacker, Somebody
from mole.audit.levels import Level
from mole.audit.report import Verdict

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
    receiver = levels.get(Attacker.DEVELOPER, Level.UNKNOWN)
    folder = "the folder" if what == "delivery" else "such a delivery"
    anybody = f"anybody who gets hold of {folder}" if _anybody_learns(levels, sealed) else ""
    learns = f", and {anybody} learns something of them" if anybody else ""
    done = {verdict.attacker: _done(verdict) for verdict in verdicts if verdict.level == Level.BROKEN}
    if receiver == Level.BROKEN:
        strangers = _strangers(done, sealed) or learns
        return f"{like}: its receiver can {done[Attacker.DEVELOPER]}{strangers}."
    if levels.get(Attacker.INJECTOR) == Level.BROKEN:
        return f"{like}: a receiver who knows some of them can get the others back{learns}."
    if receiver == Level.UNKNOWN:
        return f"{like} until more is known: what its receiver can do was not tested."
    tested = {verdict.attacker for verdict in verdicts if verdict.fully_tested}
    if Attacker.DEVELOPER not in tested:
        more = "its receiver learns something of them, and what else it can do"
        untold = more if receiver == Level.LEAKS else "what its receiver can do"
        return f"{like} until more is known: {untold} was not tested in full."
    untested = [one.label for one in Attacker if one not in tested]
    open_ = f" Not tested in full: {', '.join(untested)}." if untested else ""
    if receiver == Level.LEAKS:
        who = f"its receiver learns it, and so does {anybody}" if anybody else "its receiver learns it"
        return (
            f"This {what} gives something of the images away: {who}.{open_} No attack we tried got the "
            "images themselves, which is no promise."
        )
    return f"No attack we tried got at the images, which is no promise: others may try more.{open_}"


def _anybody_learns(levels: Mapping[Somebody, Level], sealed: bool) -> bool:
    """Whether the files alone give something away, and lie open."""
    return not sealed and any(levels.get(one) == Level.LEAKS for one in (Attacker.OUTSIDER, Attacker.THIEF))


def _done(verdict: Verdict) -> str:
    """What an attacker does who has broken something: rough copies are not the images."""
    return "pick most of them out" if verdict.is_rough else "get them back"


def _strangers(done: Mapping[Somebody, str], sealed: bool) -> str:
    """Which strangers can do so, too, or could if they had it in the clear."""
    can, gets = ("could", "got") if sealed else ("can", "gets")
    clear = " in the clear" if sealed else ""
    for attacker, what in (
        (Attacker.OUTSIDER, "only the morphed files"),
        (Attacker.THIEF, "the whole of it"),
    ):
        if attacker in done:
            who = f"a stranger who {gets} {what}{clear}"
            is_same = done[attacker] == done[Attacker.DEVELOPER]
            return f", and so {can} {who}" if is_same else f", and {who} {can} {done[attacker]}"
    return ""
