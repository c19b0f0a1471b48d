"""What `--help` prints: plain text for a terminal of 80 columns, in the words that a user types.

Options stand in groups, and those that a command cannot do without come first. typer's own panels fold
three words into a line where names are long, and show the types of Python.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from typer.core import TyperCommand

from mole.cli.fit_to_print import forget_advice
from mole.errors import MoleError

GLUE = "\N{NO-BREAK SPACE}"
NAMES = 28  # columns for the names of options; longer ones get a line of their own
REQUIRED, OTHERS = "Required", "Options"
GROUPS = {
    "Images": ("--mode", "--resize", "--skip-bad", "--window", "--depth", "--keep", "--views"),
    "Labels": (
        "--labels", "--label-column", "--label-tag", "--folder-labels", "--no-labels", "--class-names",
    ),
    "Protection": ("--front", "--bits", "--sigma", "--epsilon", "--clip", "--budget"),
    "Server": ("--url", "--served-name", "--token-file", "--certificate", "--private-key"),
    "Secrets and signatures": (
        "--key", "--passphrase-file", "--identity", "--recipient", "--sign", "--signer", "--layer-signer",
        "--allow-second-layer",
    ),
    "Output": (
        "--out", "--force", "--dtype", "--layer-dtype", "--layer-form", "--ids", "--by", "--receiver",
        "--summary", "--no-pictures", "--no-appendix", "--fail-on", "--json", "--quiet",
    ),
    "Help": ("--help", "--version"),
}  # fmt: skip
GROUP_OF = {option: group for group, options in GROUPS.items() for option in options}
Rows = Sequence[tuple[str, str]]


class PlainCommand(TyperCommand):
    """A command whose help is plain text, and whose errors advise no options that it does not have."""

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except MoleError as error:
            forget_advice(error, {name for part in self.params for name in part.opts})
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, description, arguments, options by group, and the example."""
        formatter.write(help_of(self, ctx, formatter.width))


def help_of(command: Any, ctx: Any, width: int) -> str:
    """The help of one command."""
    parts = command.get_params(ctx)
    arguments = [part for part in parts if part.param_type_name == "argument"]
    named = [part.metavar if part.required else f"[{part.metavar}]" for part in arguments]
    grouped: dict[str, list[tuple[str, str]]] = {
        group: [] for group in (REQUIRED, OTHERS, *GROUPS)
    }  # in this order
    for part in parts:
        if part not in arguments:
            grouped[_group(part)].append((names_of(part), words_of(part)))
    return joined(
        [
            wrapped(f"Usage: {' '.join([ctx.command_path, '[OPTIONS]', *named])}", width),
            *paragraphs(command.help or "", width),
            *section("Arguments", [(part.metavar, words_of(part)) for part in arguments], width),
            *(part for group, rows in grouped.items() for part in section(group, rows, width)),
            example(command.epilog or "", width),
        ]
    )


def joined(blocks: Sequence[str]) -> str:
    """Blocks of text, with an empty line between them."""
    return "\n\n".join(block for block in blocks if block) + "\n"


def paragraphs(text: str, width: int) -> Iterator[str]:
    """The paragraphs of a docstring, each wrapped anew."""
    for paragraph in text.split("\n\n"):
        yield wrapped(" ".join(paragraph.split()), width)


def section(title: str, rows: Rows, width: int) -> Iterator[str]:
    r"""A title and rows below it, in two columns; nothing where there are no rows.

    >>> print(*section("Output", [("--out FILE", "The file to write.")], 60))
    Output:
      --out FILE  The file to write.
    """
    if not rows:
        return
    indent = max((len(name) for name, _ in rows if len(name) <= NAMES), default=NAMES) + 4
    lines = [f"{title}:"]
    for name, words in rows:
        first, *more = wrapped(words, width - indent).split("\n")
        if len(name) > indent - 4:
            lines += [f"  {name}", " " * indent + first]
        else:
            lines.append(f"  {name:<{indent - 4}}  {first}".rstrip())
        lines += [" " * indent + line for line in more]
    yield "\n".join(lines)


def wrapped(text: str, width: int, end: str = "") -> str:
    """Text in lines, of which no word is cut, nor what a `GLUE` joins."""
    lines = textwrap.wrap(
        text, width - len(end), subsequent_indent="  " if end else "", break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
    return f"{end}\n".join(lines).replace(GLUE, " ")


def example(text: str, width: int) -> str:
    r"""A line to type, which a shell still takes as one where it is long.

    >>> print(example("Example: mole verify delivery --identity developer.txt", 40))
    Example: mole verify delivery \
      --identity developer.txt
    """
    return wrapped(re.sub(r"(?<= )(--?[\w-]+) (?!-)", rf"\1{GLUE}", text), width, end=" \\")


def _group(part: Any) -> str:
    if part.required:
        return REQUIRED
    return next((GROUP_OF[name] for name in part.opts if name in GROUP_OF), OTHERS)


def names_of(part: Any) -> str:
    """'-o, --out FILE', or '--class-names / --no-class-names'."""
    names = ", ".join(sorted(part.opts, key=len))
    if part.is_flag:
        return " / ".join([names, *part.secondary_opts])
    return f"{names} {part.metavar or ''}".rstrip()


def words_of(part: Any) -> str:
    """What an option is for, and what holds without it."""
    default = None if getattr(part, "is_flag", False) or callable(part.default) else part.default
    return f"{part.help} [default:{GLUE}{default}]" if default not in (None, "", ()) else str(part.help)
