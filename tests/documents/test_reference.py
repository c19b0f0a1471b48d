"""The API reference can be built, covers what others build on, and has no link that leads nowhere."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import mole

pytest.importorskip("pdoc")

ROOT = Path(__file__).parents[2]
UNNEEDED = ("ray", "datasets", "transformers", "s3fs", "typer")
BUILD = f"""
import sys
import reference
reference.build(reference.Path(sys.argv[1]))
print(*[name for name in {UNNEEDED} if name in sys.modules])
"""


class Page(HTMLParser):
    """The links of a page, and what can be linked to in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values["id"]} if "id" in values else set()
        self.links += [values[name] for name in ("href", "src") if values.get(name)]


def broken(pages: dict[Path, Page]) -> list[str]:
    """Links that lead to no page, or to no place in one."""
    found = []
    for file, page in pages.items():
        for link in page.links:
            path, _, anchor = link.partition("#")
            target = (file.parent / path).resolve() if path else file
            if link.startswith(("https://", "http://", "data:")):
                continue
            if target not in pages or (anchor and anchor not in pages[target].anchors):
                found.append(f"{file.name}: {link}")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site").resolve()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, folder],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []  # nothing heavy was loaded that it does not need
    return {file: Page(file) for file in folder.rglob("*.html")}


def test_every_link_leads_somewhere(site):
    assert len(site) > 10
    assert broken(site) == []


def test_every_public_name_is_described(site):
    (package,) = (page for file, page in site.items() if file.name == "mole.html")
    assert {*mole.__all__} - {"audit"} <= package.anchors  # a package, with pages of its own
    (torch,) = (page for file, page in site.items() if file.name == "torch.html")
    assert {*mole.torch.__all__} <= torch.anchors


def test_that_a_broken_link_is_found(tmp_path):
    (tmp_path / "page.html").write_text(
        '<a id="here" href="#here">x</a><a href="none.html">y</a><a href="#none">z</a>'
    )
    pages = {tmp_path / "page.html": Page(tmp_path / "page.html")}
    assert broken(pages) == ["page.html: none.html", "page.html: #none"]
