"""Text for a terminal: values and advice in a person's words, without the passwords of URLs.

Nothing that comes out of here can steer a terminal.
"""

from collections.abc import Collection

from mole.errors import MoleError, ProblemsError, with_advice
from mole.foreign_text import listed, printable, shown
from mole.url_secrets import masked

MANY = 1000  # classes of a delivery, all shown where a person may want to know them
LONGEST_VALUE = 2000  # characters of one value in a table
OPTIONS = {
    "passphrase": "passphrase-file",
    "identities": "identity",
    "replace": "force",
    "model": "served-name",
    "token": "token-file",
}


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
