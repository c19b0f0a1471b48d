"""Text that somebody else wrote, made fit for a message or a table.

A class name, a split, a column or the name of a program can hold anything: sequences that recolour or
rename a terminal, line breaks that fake a second message, letters that turn the direction of reading, a
megabyte of filler. What comes from a file of the other side enters a message through `shown`; the command
line puts all that it prints through `printable` once more, for what libraries say in their own words.
"""

import unicodedata
from collections.abc import Iterable

LONGEST = 80  # characters: a sentence can carry a name of this length
AT_MOST = 8  # names: more of them are counted
# Control characters, formats such as bidirectional overrides, lone surrogates, private and unassigned code
# points, line and paragraph separators.
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def shown(text: object, longest: int = LONGEST) -> str:
    r"""Foreign text for a message: in one line, no longer than that, with what cannot be seen as escapes.

    >>> shown("cat"), shown("\x1b[31mcat\n"), shown("a\u202eb"), shown("x" * 200, longest=5)
    ('cat', '\\x1b[31mcat\\n', 'a\\u202eb', 'xxxx…')
    """
    whole = str(text)
    short = printable(whole[:longest])
    return short if len(whole) <= longest and len(short) <= longest else f"{short[: longest - 1]}…"


def listed(names: Iterable[object], at_most: int = AT_MOST) -> str:
    """Several names for a message, the first few of them.

    >>> listed(["cat", "dog"]), listed(range(12), at_most=2)
    ('cat, dog', '0, 1 and 10 more')
    """
    every = list(names)
    few = ", ".join(map(shown, every[:at_most]))
    return few if len(every) <= at_most else f"{few} and {len(every) - at_most} more"


def printable(text: str) -> str:
    r"""The same text with everything that cannot be seen as an escape; as long as it was, or longer.

    >>> printable("über 9\u00a0%"), printable("\x9b2J")
    ('über 9\xa0%', '\\x9b2J')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escaped(letter) if unicodedata.category(letter) in HIDDEN else letter for letter in text
    )


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
