"""A real browser, and what can be wrong with a page in it."""

import re
import shutil
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

LIGHT = {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}}
DARK = {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}}
PHONE = {"color_scheme": "light", "viewport": {"width": 320, "height": 640}}
DARK_PHONE = {"color_scheme": "dark", "viewport": {"width": 320, "height": 640}}


def sheets(pdf: bytes) -> int:
    """How many sheets of paper a PDF has."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def problems(browser, file: Path, *, barriers: bool = True, **how) -> list[str]:
    """What is wrong with a page: requests, messages, broken pictures, overflow, and barriers, if asked for.

    Barriers take longest to look for.
    """
    context = browser.new_context(**how)
    page = context.new_page()
    asked, found = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: found.append(f"says {message.text}"))
    page.on("pageerror", lambda error: found.append(f"fails {error}"))
    page.on("dialog", lambda dialog: (found.append("opens a dialog"), dialog.dismiss()))
    page.goto(file.as_uri(), wait_until="load")
    own = (file.as_uri(), "data:image/png;base64,")
    found += [f"requests {url}" for url in asked if url != own[0] and not url.startswith(own[1])]
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    broken = page.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth).length")
    found += [f"{broken} pictures did not load"] * bool(broken)
    found += overflow(page)
    if barriers:
        found += barriers_of(page)
    context.close()
    return found


def overflow(page) -> list[str]:
    """Whether a page is wider than its window."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"{wide} pixels wider than the screen"] * (wide > 0)


def barriers_of(page) -> list[str]:
    """What axe finds; of what is right, it need not say where it stands."""
    axe = Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"axe: {violation['id']} ({violation['impact']}) at {node['target']}"
        for violation in axe.response["violations"]
        for node in violation["nodes"]
    ]
