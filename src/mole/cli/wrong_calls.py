"""Calls that cannot be understood, and the one sentence that says what to type instead."""

import re
from typing import Any

import typer

from mole.errors import ParameterError

UsageError: Any = typer.BadParameter.__base__  # what every such error is; typer has no public name for it
_GUESS = re.compile(r"[.]? (Did you mean|\(Possible options).*")

# What had another name in earlier versions: (command, what was typed) -> what to type now.
RENAMED = {
    ("", "analyze"): "the command is called analyse now",
    ("analyse", "--model"): "the option is called --network now",
    ("audit", "--truth"): "the option is called --data now",
    ("audit", "--mode"): "images are prepared as those of the delivery were, so leave it out",
    ("audit", "--resize"): "images are prepared as those of the delivery were, so leave it out",
    (
        "",  # typer does not say of which command; only one has it
        "Option '--labels' requires an argument",
    ): "name a table of labels, or give --folder-labels instead for those made from folders",
    ("experiment", "--draws"): "the option is called --seeds now",
    ("experiment", "--images"): "the option is called --data now",
    ("experiment", "--quick"): "it is called --preset tiny now",
    ("review", "--data"): "the data comes first now, and the layer with --layer",
    (
        "predict",
        "extra argument",
    ): "only the delivery is one now, and the checkpoint is an option, --checkpoint",
}


class CallError(ParameterError):
    """Options that cannot stand together, or one that cannot be read: the call was wrong."""


def in_one_sentence(error: Any) -> str:
    """What was wrong with a call, where an old name is known, and where to look.

    >>> in_one_sentence(UsageError("No such command 'morf'."))
    "no such command 'morf': see mole --help"
    """
    said = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".?")
    path = "mole" if error.ctx is None else error.ctx.command_path
    command = path.partition(" ")[2]
    hints = [hint for (of, word), hint in RENAMED.items() if of == command and _tells_of(said, word)]
    if hints:
        said = _GUESS.sub("", said)  # typer's own is another one
    said = f"{said[:1].lower()}{said[1:]}"
    if "Did you mean" in said:
        return f"{said}? See {path} --help"
    return f"{said}: {'; '.join([*hints, f'see {path} --help'])}"


def _tells_of(said: str, word: str) -> bool:
    """Whether typer's sentence is about a word as a whole: an option, a command, or the arguments.

    >>> _tells_of("No such option: --truth", "--truth"), _tells_of("No such option: --truths", "--truth")
    (True, False)
    """
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", said) is not None
