"""Build the API reference from docstrings: `python tools/reference.py site`.

It covers what others build on: the package's own names, the developer's side, and the mathematics. Commands
describe themselves (`mole --help`), and file formats have their own page.
"""

import sys
from pathlib import Path

import pdoc
import pdoc.render

MODULES = ("mole", "mole.errors", "mole.torch", "mole.scheme", "mole.analysis")
# The audit's own workings. What it gives is in `run` and `report`.
LEFT_OUT = tuple(
    f"!mole.audit.{name}"
    for name in (
        "costs",
        "from_.*",
        "paper_figures",
        "pictures",
        "scoring",
        "subject",
        "verdicts",
        "wor.*",
        "wri.*",
    )
)


def build(out: Path) -> None:
    """Write the pages into a folder."""
    pdoc.render.configure(docformat="google", footer_text="Morphed Learning", search=True)
    pdoc.pdoc(*MODULES, *LEFT_OUT, output_directory=out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("say where: python tools/reference.py site")
    build(Path(sys.argv[1]))
