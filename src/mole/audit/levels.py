"""How far attackers came, and what came of attacks, in words that machines read.

Words such as 'nothing found' and 'not tried' are strings of a type that also knows what a page calls them.
"""

from enum import StrEnum
from typing import Literal

Tone = Literal["good", "warn", "bad", "none"]
"""What gives a word its shape and colour on the page; the words alone carry the meaning."""


class Level(StrEnum):
    """What an attacker can do, the least alarming first.

    Better than chance is a leak, except where a certificate says so beforehand: that much was agreed to.

    >>> Level.LEAKS.value, Level.LEAKS.label, Level.LEAKS.tone, Level.LEAKS.rank
    ('leaks', 'Leaks', 'warn', 3)
    """

    label: str
    tone: Tone

    UNKNOWN = "not tested", "Not tested", "none"
    NOTHING_FOUND = "nothing found", "Nothing found", "good"
    WITHIN = "within the certificate", "Within the certificate", "none"
    LEAKS = "leaks", "Leaks", "warn"
    BROKEN = "broken", "Broken", "bad"

    def __new__(cls, value: str, label: str, tone: Tone) -> "Level":
        """A string that knows how a page shows it."""
        member = str.__new__(cls, value)
        member._value_, member.label, member.tone = value, label, tone
        return member

    @property
    def rank(self) -> int:
        """How bad it is, from 0."""
        return list(Level).index(self)

    @property
    def alarm(self) -> int:
        """How early a reader should hear of it: what was not tested comes before what found nothing."""
        order = (Level.NOTHING_FOUND, Level.WITHIN, Level.UNKNOWN, Level.LEAKS, Level.BROKEN)
        return order.index(self)


class Status(StrEnum):
    """What came of an attack.

    >>> Status.PARTLY.value, Status.PARTLY.label, Status.PARTLY.tone, Status.PARTLY.level.value
    ('partly succeeded', 'Attack partly succeeded', 'warn', 'leaks')

    Attributes:
        label: what a page calls it.
        level: what it says of its attacker; UNKNOWN where nothing was compared with the truth.
    """

    label: str
    level: Level

    SUCCEEDED = "succeeded", "Attack succeeded", Level.BROKEN
    PARTLY = "partly succeeded", "Attack partly succeeded", Level.LEAKS
    FAILED = "failed", "Attack failed", Level.NOTHING_FOUND
    NOT_APPLICABLE = "not applicable", "Not applicable", Level.UNKNOWN
    NOT_TRIED = "not tried", "Not tried", Level.UNKNOWN  # no time left, or something was not given
    NOT_COMPARED = "not compared", "Tried, not compared", Level.UNKNOWN  # there was no truth
    GAVE_UP = "gave up", "Gave up", Level.UNKNOWN

    def __new__(cls, value: str, label: str, level: Level) -> "Status":
        """A string that knows how a page shows it."""
        member = str.__new__(cls, value)
        member._value_, member.label, member.level = value, label, level
        return member

    @property
    def tone(self) -> Tone:
        """That of its level."""
        return self.level.tone


class Promise(StrEnum):
    """What became of a certificate's promise before one attacker, the least alarming first.

    >>> Promise.EXCEEDED.value, Promise.EXCEEDED.label, Promise.EXCEEDED.is_broken
    ('exceeded', 'Broken: more than allowed', True)
    >>> Promise.WEAK.is_broken  # the software did what it was told to do
    False
    """

    label: str

    UNTESTED = "not tested", "Not tested"
    KEPT = "kept", "Within the certificate"
    WEAK = "kept, and weak", "Broken, and allowed"  # it allows so much that images are not hidden
    NO_NOISE = "noise missing", "Broken: noise missing"
    EXCEEDED = "exceeded", "Broken: more than allowed"

    def __new__(cls, value: str, label: str) -> "Promise":
        """A string that knows what a page calls it."""
        member = str.__new__(cls, value)
        member._value_, member.label = value, label
        return member

    @property
    def is_broken(self) -> bool:
        """Whether what left is not what the certificate speaks of."""
        return self in (Promise.NO_NOISE, Promise.EXCEEDED)
