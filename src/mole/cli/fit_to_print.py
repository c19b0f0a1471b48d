"""Text for a terminal: values and advice in a person's words, without the passwords of URLs.

Nothing that comes out of here can steer a terminal.
"""

import re
from collections.abc import Collection

from mole.errors import MoleError, ProblemsError, with_advice
from mole.foreign_text import listed, printable, shown

MANY = 1000  # classes of a delivery, all shown where a person may want to know them
LONGEST_VALUE = 2000  # characters of one value in a table
OPTIONS = {
    "passphrase": "passphrase-file",
    "identities": "identity",
    "replace": "force",
    "model": "served-name",
}

# Each of these reads every character once: text may be long, and somebody else's.
_WORD = re.compile(r"[^\s'\"]+")
_USER = re.compile(r"://[^/:@]*:(?!\d+/)")  # a port is not a password
_PARAMETER = re.compile(r"([?&]([^=&?\s]*)=)[^&\s'\"]+")
_SECRET = re.compile("sig|token|secret|password|credential|key", re.IGNORECASE)


def masked(text: str) -> str:
    """The same text, without the passwords and tokens of URLs in it.

    >>> masked("ftp://me:secret@host/photos is not there")
    'ftp://me:***@host/photos is not there'
    >>> masked("https://host/photos.npz?size=3&token=abc cannot be read")
    'https://host/photos.npz?size=3&token=*** cannot be read'
    """
    without_passwords = _WORD.sub(_without_password, text) if "://" in text else text
    return _PARAMETER.sub(
        lambda found: f"{found[1]}***" if _SECRET.search(found[2]) else found[0], without_passwords
    )


def _without_password(word: re.Match[str]) -> str:
    """A word with the first password masked: up to the last '@', because one may have a slash in it."""
    text = word[0]
    last = text.rfind("@")
    user = _USER.search(text, 0, last) if last >= 0 else None
    return text if user is None else f"{text[: user.end()]}***{text[last:]}"


def fit_to_print(text: str) -> str:
    r"""A line for a terminal: secrets masked, and whatever could steer the terminal as escapes.

    >>> fit_to_print("class \x1b[2J at ftp://me:secret@host")
    'class \\x1b[2J at ftp://me:***@host'
    """
    return printable(masked(text))


def in_options(error: MoleError) -> str:
    """An error's message, with what would help as options of the command line.

    >>> in_options(MoleError("it is too large", advice={"resize": ("crop", "stretch"), "skip_bad": True}))
    'it is too large: give --resize crop or --resize stretch and --skip-bad'
    >>> in_options(MoleError("the key is encrypted", advice={"identities": None}))
    'the key is encrypted: give --identity'
    """
    hints = []
    for name, value in error.advice.items():
        option = option_of(name)
        values = (value,) if isinstance(value, str) else value
        hints.append(
            " or ".join(f"{option} {one}" for one in values) if isinstance(values, tuple) else option
        )
    return with_advice(error.message, hints)


def option_of(parameter: str) -> str:
    """What the command line calls a parameter.

    >>> option_of("skip_bad"), option_of("replace")
    ('--skip-bad', '--force')
    """
    return "--" + OPTIONS.get(parameter, parameter.replace("_", "-"))


def forget_advice(error: MoleError, options: Collection[str]) -> None:
    """Take back advice that cannot be followed, because the command has no such option."""
    error.advice = {name: value for name, value in error.advice.items() if option_of(name) in options}
    for problem in error.problems if isinstance(error, ProblemsError) else ():
        forget_advice(problem, options)


def in_words(value: object) -> str:
    """A value for a table.

    >>> in_words((3, 32, 32)), in_words((0.5, 0.25)), in_words(True), in_words(None), in_words(())
    ('3 x 32 x 32', '0.5, 0.25', 'yes', 'none', '-')
    """
    if isinstance(value, tuple | list):
        is_shape = all(isinstance(part, int) for part in value)
        return (" x ".join(map(str, value)) if is_shape else listed(value, MANY)) if value else "-"
    if isinstance(value, dict):
        return ", ".join(f"{shown(name)} {in_words(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else shown(value, LONGEST_VALUE)
