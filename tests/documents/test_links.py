"""Every link of every document leads somewhere: to a file that is there, and to a heading in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.md")])


def links_in(text: str) -> list[str]:
    """Targets of links and pictures, without those in code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\]\(\s*([^)\s]+)\s*\)", prose)


def anchors_in(text: str) -> set[str]:
    """What GitHub calls the headings of a document."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.*?) *$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path) -> list[str]:
    """Links of a document that lead nowhere."""
    found = []
    for link in links_in(document.read_text()):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if link.startswith(("https://", "mailto:")):
            continue
        if not target.exists() or (anchor and anchor not in anchors_in(target.read_text())):
            found.append(link)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document):
    assert broken(document) == []


def test_the_documents_are_all_there():
    names = {path.name for path in DOCUMENTS}
    assert {"README.md", "SECURITY.md", "CHANGELOG.md", "threat-model.md", "when-not-to-use.md"} <= names


def test_that_a_broken_link_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# One heading: `code` & more\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](#here) [b](other.md#one-heading-code--more) [c](https://example.org/x#y)\n"
    )
    assert broken(page) == []
    page.write_text("# Here\n[a](#there) [b](other.md#none) [c](nowhere.md) ![d](none.png) `[e](code)`\n")
    assert broken(page) == ["#there", "other.md#none", "nowhere.md", "none.png"]
