"""Build the API reference from docstrings: `python tools/reference.py site`.

It covers what others build on: the package's own names, the developer's side, and the mathematics. Commands
describe themselves (`mole --help`), and file formats have their own page.
"""

import re
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
    pdoc.render.configure(docformat="google", footer_text="Morphed Learning", show_source=False)
    pdoc.pdoc(*MODULES, *LEFT_OUT, output_directory=out)
    for page in out.rglob("*.html"):
        page.write_text(without_dead_links(page.read_text()))


def without_dead_links(page: str) -> str:
    """A page whose links to members that it does not show, such as inherited ones, are plain text.

    >>> without_dead_links('<a id="here" href="#here">x</a> <a href="#none">y</a>')
    '<a id="here" href="#here">x</a> y'
    """
    places = set(re.findall(r'\bid="([^"]+)"', page))
    link = re.compile(r'<a\b[^>]*?href="#([^"]+)"[^>]*>(.*?)</a>', re.DOTALL)
    return link.sub(lambda found: found[0] if found[1] in places else found[2], page)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("say where: python tools/reference.py site")
    build(Path(sys.argv[1]))
